// A consumer of kafkajs that disconnects while it joins its group stays a member, and goes on reading
// (../kafkajs-left-member.md).
//
// fault: delay answer to SyncGroup by 3s
// node kafkajs-left-member.cjs BOOTSTRAP    # of the proxy with that fault; needs kafkajs
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
  await producer.send({ topic, messages: [{ value: '0' }, { value: '1' }] })
  const consumer = kafka.consumer({ groupId: topic })
  let left = false
  let delivered = 0
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  consumer.run({ eachMessage: async () => { delivered += left } })
  await sleep(1500)
  await consumer.disconnect()
  left = true
  await sleep(60000)
  const { groups: [{ state, members }] } = await admin.describeGroups([topic])
  console.log(`kafkajs ${require('kafkajs/package.json').version}: a minute after disconnect resolved: group ${state}, ${members.length} members; delivered since: ${delivered}`)
  process.exit(members.length > 0 || delivered > 0 ? 10 : 0)
}

main()
