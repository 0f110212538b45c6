// A member of @platformatic/kafka that gave up joining again commits on, and its group waits for it
// (../platformatic-kafka-silent-member.md).
//
// fault: answer REBALANCE_IN_PROGRESS to OffsetCommit, 2nd, once
// fault: cut before JoinGroup, 3rd, once
// fault: cut before JoinGroup, 4th, once
// fault: cut before JoinGroup, 5th, once
// fault: cut before JoinGroup, 6th, once
// node platformatic-kafka-silent-member.cjs BOOTSTRAP    # of the proxy with these faults; needs @platformatic/kafka
Promise.withResolvers ??= function () { // Node 20 has none
  const made = {}
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

async function main() {
  const { Admin, Consumer, Producer } = await import(require.resolve('@platformatic/kafka'))
  const topic = `shown-${Date.now().toString(36)}`
  const options = { clientId: 'x', bootstrapBrokers: [process.argv[2]], groupId: topic, sessionTimeout: 10000, heartbeatInterval: 1000 }
  await new Admin(options).createTopics({ topics: [topic], partitions: 2, replicas: 1 })
  await new Producer(options).send({ acks: -1, messages: [{ topic, partition: 0, value: Buffer.from('x') }] })
  const first = new Consumer(options)
  const told = []
  let heartbeats = 0
  for (const event of ['error', 'consumer:heartbeat:error', 'consumer:heartbeat:stalled']) first.on(event, () => told.push(event))
  first.on('consumer:heartbeat:end', () => heartbeats++)
  const stream = await first.consume({ topics: [topic], mode: 'earliest', autocommit: false })
  stream.on('error', () => told.push('error of the stream')).on('data', () => {})
  const commit = () => first.commit({ offsets: [{ topic, partition: 0, offset: 1n, leaderEpoch: -1 }] }).then(() => 'ok', error => error.message)
  const commits = [await commit(), await commit()]
  heartbeats = 0
  const joining = new Consumer(options).consume({ topics: [topic], mode: 'earliest' }).then(() => true)
  let joined = false
  for (let second = 0; second < 60 && !joined; second++) [joined] = await Promise.all([Promise.race([joining, sleep(1000)]), commit().then(said => commits.push(said))])
  console.log(`commits: ${commits.slice(0, 2).join(', ')}, then ok ${commits.slice(2).filter(said => said === 'ok').length} of ${commits.length - 2}; heartbeats since: ${heartbeats}; told: ${told}; a second member has${joined ? '' : ' not'} joined within a minute`)
  process.exit(joined ? 0 : 10)
}

main()
