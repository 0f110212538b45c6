// kafkajs sends for ever on a connection on which its broker is silent (../kafkajs-silent-connection.md).
//
// fault: silence Produce, once
// node kafkajs-silent-connection.cjs BOOTSTRAP    # of the proxy with that fault; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING, requestTimeout: 10000, enforceRequestTimeout: true })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: true })
  const producer = kafka.producer({ idempotent: true, retry: { retries: 1000, maxRetryTime: 1000 } })
  let timeouts = 0
  producer.on(producer.events.REQUEST_TIMEOUT, () => (timeouts += 1))
  await producer.connect()
  const first = producer.send({ topic, messages: [{ value: '0' }] })
  const answered = await Promise.race([first, new Promise((done) => setTimeout(done, 120000))])
  const other = kafka.producer()
  await other.connect()
  await other.send({ topic, messages: [{ value: '1' }] })
  const seen = answered ? 'acknowledged' : 'no answer in 120 s'
  console.log(`kafkajs ${require('kafkajs/package.json').version}: record 0: ${seen}, ${timeouts} requests timed out after 10 s; record 1 of a new producer: acknowledged`)
  process.exit(answered ? 0 : 10)
}

main()
