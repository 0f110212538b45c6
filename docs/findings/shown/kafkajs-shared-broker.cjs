// kafkajs acknowledges records that it never sends: two brokers of its pool are one object
// (../kafkajs-shared-broker.md).
//
// fault: delay answer to Metadata by 2s
// fault: delay answer to Produce on t-0 by 2s, 2nd, once
// fault: cut before Produce on t-0, 3rd, once
// node kafkajs-shared-broker.cjs BOOTSTRAP    # of the proxy with these faults, three brokers; needs kafkajs
const { Kafka, logLevel } = require('kafkajs')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

async function main() {
  const kafka = brokers => new Kafka({ brokers, logLevel: logLevel.NOTHING })
  const admin = kafka([process.argv[2]]).admin()
  await admin.connect()
  const { brokers } = await admin.describeCluster()
  const nodes = brokers.map(({ nodeId }) => nodeId)
  const replicaAssignment = nodes.map((node, partition) => ({ partition, replicas: [node] }))
  await admin.createTopics({ topics: [{ topic: 't', numPartitions: -1, replicationFactor: -1, replicaAssignment }], waitForLeaders: true })
  const seed = kafka([`${brokers[0].host}:${brokers[0].port}`]) // the leader of 0
  const producer = seed.producer({ metadataMaxAge: 10000, maxInFlightRequests: 1 })
  const send = partition => producer.send({ topic: 't', messages: [{ partition, value: 'x' }] })
  await producer.connect()
  await Promise.all([1, 2].map(send)) // all brokers are connected
  await sleep(11000)
  await send(0) // and the metadata are new
  await sleep(9000)
  const sent = [send(0), send(0)] // the second waits for the first, and is cut off
  await sleep(1500)
  await Promise.all([...sent, ...Array(6).fill(1).map(send)]) // the metadata are old, and asked for meanwhile
  const ends = await admin.fetchTopicOffsets('t')
  const end = partition => Number(ends.find(one => one.partition === partition).high)
  await Promise.all([1, 2].map(send))
  const after = await admin.fetchTopicOffsets('t')
  const gone = after.filter(({ partition, high }) => partition > 0 && Number(high) === end(partition))
  console.log(`kafkajs ${require('kafkajs/package.json').version}: 2 sends resolved, ${gone.length} not in the log`)
  process.exit(gone.length ? 10 : 0)
}

main()
