// kafkajs cannot read its coordinator any more after an answer of which half arrived (../kafkajs-torn-answer.md).
//
// fault: half answer to Heartbeat, 2nd, once
// node kafkajs-torn-answer.cjs BOOTSTRAP    # of the proxy with that fault; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], timeout: 30000 })
  const producer = kafka.producer()
  await producer.connect()
  const consumer = kafka.consumer({ groupId: topic, heartbeatInterval: 300 })
  let timeouts = 0
  consumer.on(consumer.events.REQUEST_TIMEOUT, () => (timeouts += 1))
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const got = []
  await consumer.run({ eachMessage: async ({ message }) => void got.push(message.offset) })
  for (let sent = 0; sent < 600; sent += 1) {
    await producer.send({ topic, messages: [{ value: String(sent) }] })
    await sleep(100)
  }
  await sleep(60000)
  const version = require('kafkajs/package.json').version
  console.log(`kafkajs ${version}: 600 sent, ${got.length} read within a minute after; ${timeouts} requests timed out`)
  process.exit(got.length < 600 ? 10 : 0)
}

main()
