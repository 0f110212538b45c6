// kafkajs delivers records again, after later ones, when their partition's leader moves while they are handled
// (../kafkajs-two-fetchers.md).
//
// fault: delay answer to Fetch by 2s
// node kafkajs-two-fetchers.cjs BOOTSTRAP    # of the proxy with that fault, three brokers; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: true })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: Array.from({ length: 20 }, (_, number) => ({ value: String(number) })) })
  const consumer = kafka.consumer({ groupId: topic, metadataMaxAge: 500 })
  const offsets = []
  let joined = 0
  consumer.on(consumer.events.GROUP_JOIN, () => joined++)
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => { offsets.push(Number(message.offset)); await sleep(500) } })
  while (offsets.length < 3) await sleep(100)
  const { topics: [{ partitions: [{ leader }] }] } = await admin.fetchTopicMetadata({ topics: [topic] })
  await admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment: [{ partition: 0, replicas: [leader % 3 + 1] }] }] })
  await sleep(20000)
  console.log(`kafkajs ${require('kafkajs/package.json').version}: joined ${joined} time, delivered: ${offsets.join(' ')}`)
  process.exit(offsets.some((offset, place) => place > 0 && offset <= offsets[place - 1]) ? 10 : 0)
}

main()
