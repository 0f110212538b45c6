// @platformatic/kafka writes a record for a new partition into another one, and acknowledges it
// (../platformatic-kafka-other-partition.md).
//
// fault: observe Produce
// node platformatic-kafka-other-partition.cjs BOOTSTRAP    # needs @platformatic/kafka
Promise.withResolvers ??= function () { // Node 20 has none
  const made = {}
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}

async function main() {
  const { Admin, Producer } = await import(require.resolve('@platformatic/kafka'))
  const options = { clientId: 'x', bootstrapBrokers: [process.argv[2]] }
  const topic = `shown-${Date.now().toString(36)}`
  const admin = new Admin(options)
  await admin.createTopics({ topics: [topic], partitions: 3, replicas: 1 })
  const producer = new Producer(options)
  const send = async partition => {
    const { offsets } = await producer.send({ acks: -1, messages: [{ topic, partition, value: Buffer.from('x') }] })
    return offsets[0].partition
  }
  await send(0)
  await admin.createPartitions({ topics: [{ name: topic, count: 4, assignments: [{ brokerIds: [1] }] }] })
  const seen = { 3: await send(3), 7: await send(7) }
  console.log(`sent to partition: written to: ${JSON.stringify(seen)}`)
  process.exit(seen[3] === 0 ? 10 : 0)
}

main()
