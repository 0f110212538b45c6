// A producer of @platformatic/kafka with a transactional id that was used before never starts
// (../platformatic-kafka-transactional-id.md).
//
// fault: observe InitProducerId
// node platformatic-kafka-transactional-id.cjs BOOTSTRAP    # needs @platformatic/kafka
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
  await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 })
  const seen = []
  for (const name of ['a', 'b', 'b', 'b']) {
    const producer = new Producer({ ...options, idempotent: true, transactionalId: `${topic}-${name}` })
    try {
      const transaction = await producer.beginTransaction()
      await transaction.send({ messages: [{ topic, value: Buffer.from('x') }] })
      await transaction.commit()
      seen.push(`${name}: committed as producer id ${producer.producerId}, epoch ${producer.producerEpoch}`)
    } catch (error) {
      seen.push(`${name}: ${error.apiId ?? error.errors?.at(-1).apiId ?? error.message}`)
    }
    await producer.close()
  }
  console.log(seen.join('; '))
  process.exit(seen.at(-1).endsWith('PRODUCER_FENCED') ? 10 : 0)
}

main()
