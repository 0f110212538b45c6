// kafkajs acknowledges records of a partition that it does not know yet, and never sends them
// (../kafkajs-unknown-partition.md).
//
// fault: observe Produce
// node kafkajs-unknown-partition.cjs BOOTSTRAP    # no fault is needed; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: true })
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  await producer.send({ topic, messages: [{ value: 'first', partition: 0 }] })
  await admin.createPartitions({ topicPartitions: [{ topic, count: 2 }] })
  const messages = Array.from({ length: 10 }, (_, number) => ({ value: String(number), partition: 1 }))
  const answer = await producer.send({ topic, acks: -1, messages })
  const ends = await admin.fetchTopicOffsets(topic)
  const { high } = ends.find(({ partition }) => partition === 1)
  console.log(`kafkajs ${require('kafkajs/package.json').version}: 10 sent to the new partition 1: resolved with ${JSON.stringify(answer)}; in its log: ${high}`)
  process.exit(Number(high) < 10 ? 10 : 0)
}

main()
