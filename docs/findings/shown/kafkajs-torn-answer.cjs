// kafkajs cannot read its coordinator any more after an answer of which half arrived (../kafkajs-torn-answer.md).
//
// fault: half answer to Heartbeat, 2nd, once
// node kafkajs-torn-answer.cjs BOOTSTRAP    # of the proxy with that fault; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], timeout: 30000 })
  const producer = kafka.producer({ retry: { retries: 100, maxRetryTime: 1000 } })
  await producer.connect()
  const consumer = kafka.consumer({ groupId: topic, heartbeatInterval: 300 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let [last, gap] = [Date.now(), 0]
  await consumer.run({ eachMessage: async () => void (last = Date.now()) })
  for (let sent = 0; sent < 600; sent += 1) {
    await producer.send({ topic, messages: [{ value: String(sent) }] })
    await new Promise((done) => setTimeout(done, 100))
    gap = Math.max(gap, Date.now() - last)
  }
  const version = require('kafkajs/package.json').version
  console.log(`kafkajs ${version}: a record each 100 ms, none read for ${Math.round(gap / 1000)} s`)
  process.exit(gap > 20000 ? 10 : 0)
}

main()
