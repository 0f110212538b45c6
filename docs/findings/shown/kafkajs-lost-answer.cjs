// kafkajs loses one record and writes another twice after one lost answer (../kafkajs-lost-answer.md).
//
// fault: lose answer to Produce, 5th, once
// node kafkajs-lost-answer.cjs BOOTSTRAP    # of the proxy with that fault; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')

async function main() {
  const topic = `shown-${Date.now().toString(36)}`
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: true })
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  const values = Array.from({ length: 20 }, (_, number) => String(number))
  const sent = await Promise.allSettled(values.map((value) => producer.send({ topic, messages: [{ value }] })))
  const end = Number((await admin.fetchTopicOffsets(topic))[0].high)
  const consumer = kafka.consumer({ groupId: topic })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const log = []
  await new Promise((done) =>
    consumer.run({
      eachMessage: async ({ message }) => {
        log.push(String(message.value))
        if (Number(message.offset) === end - 1) done()
      },
    }),
  )
  const lost = values.filter((value, number) => sent[number].status === 'fulfilled' && !log.includes(value))
  const twice = values.filter((value) => log.filter((one) => one === value).length > 1)
  console.log(`kafkajs ${require('kafkajs/package.json').version}: ${values.length} sent, ${log.length} in the log`)
  console.log(`acknowledged and not in the log: ${lost}; twice: ${twice}`)
  process.exit(lost.length || twice.length ? 10 : 0)
}

main()
