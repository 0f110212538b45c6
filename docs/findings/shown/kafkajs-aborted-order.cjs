// kafkajs delivers a record of an aborted transaction when two transactions overlap (../kafkajs-aborted-order.md).
//
// fault: observe Fetch
// node kafkajs-aborted-order.cjs BOOTSTRAP    # no fault is needed; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')

async function begun(kafka, transactionalId) {
  const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  return producer.transaction()
}

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: true })
  const [first, second, third] = await Promise.all(['a', 'b', 'c'].map((name) => begun(kafka, `${topic}-${name}`)))
  await first.send({ topic, messages: [{ value: 'first, aborted' }] })
  await second.send({ topic, messages: [{ value: 'second, aborted' }] })
  await second.abort()
  await new Promise((done) => setTimeout(done, 1000)) // its marker is written
  await first.abort()
  await third.send({ topic, messages: [{ value: 'third, committed' }] })
  await third.commit()
  const consumer = kafka.consumer({ groupId: topic, readUncommitted: false })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const got = []
  await consumer.run({ eachMessage: async ({ message }) => void got.push(String(message.value)) })
  while (!got.includes('third, committed')) await new Promise((done) => setTimeout(done, 100))
  console.log(`kafkajs ${require('kafkajs/package.json').version}: delivered, read_committed: ${got.join('; ')}`)
  process.exit(got.length > 1 ? 10 : 0)
}

main()
