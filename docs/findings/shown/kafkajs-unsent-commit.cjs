// kafkajs says that it committed what it did not, while its consumer stops (../kafkajs-unsent-commit.md).
//
// fault: answer NOT_COORDINATOR to OffsetCommit, once
// node kafkajs-unsent-commit.cjs BOOTSTRAP    # of the proxy with that fault; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: true })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value: '0' }] })
  const consumer = kafka.consumer({ groupId: topic, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await new Promise((read) => consumer.run({ autoCommit: false, eachMessage: async () => read() }))
  const said = consumer.commitOffsets([{ topic, partition: 0, offset: '1' }]).then(() => 'resolved', String)
  await new Promise((done) => setTimeout(done, 50)) // its first attempt is answered
  await consumer.disconnect()
  const outcome = await said
  const [{ partitions }] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  console.log(`kafkajs ${require('kafkajs/package.json').version}: commitOffsets of offset 1: ${outcome}; committed: ${partitions[0].offset}`)
  process.exit(outcome === 'resolved' && partitions[0].offset === '-1' ? 10 : 0)
}

main()
