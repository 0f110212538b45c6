// The driver of kafkajs.

import { createRequire } from 'node:module'
import { COMMON, CONSUMER, PRODUCER, Refused, decoded, encoded, happened, oneOf, serve, settings, sleep, taken } from './lines.mjs'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const require = createRequire(import.meta.url)
const kafkajs = require('kafkajs')
const { Kafka, CompressionTypes, PartitionAssigners, logLevel } = kafkajs
const TOPIC = (kafkajs.ConfigResourceTypes ?? kafkajs.ResourceTypes).TOPIC
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP } // others need packages of other authors
const ASSIGNORS = { roundrobin: PartitionAssigners.roundRobin }
const ACKS = { 0: 0, 1: 1, '-1': -1 }
const RESETS = { earliest: true, latest: false }
const ISOLATIONS = { read_uncommitted: true, read_committed: false }
const RETRIED = ['retries', 'retry_backoff_ms']
const KNOWN = {
  producer: [...COMMON.slice(0, 5), 'acks', 'idempotence', 'in_flight', 'compression', 'retries', 'transactional_id',
    'transaction_timeout_ms'],
  consumer: [...COMMON.slice(0, 5), 'group', 'isolation', 'assignor', 'auto_commit', 'auto_commit_interval_ms', 'session_timeout_ms',
    'heartbeat_interval_ms', 'offset_reset', 'fetch_max_wait_ms', 'fetch_min_bytes', 'fetch_max_bytes'],
  admin: COMMON.slice(0, 5)
}

/** Without what was not given, so that the library's own defaults count. */
const given = fields => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const errorOf = error => {
  const inner = error.errors?.[0] ?? (error.code === undefined ? error.cause ?? error : error)
  return { name: inner.type ?? error.name, code: Number.isInteger(inner.code) ? inner.code : null }
}

function kafka (config, role) {
  const [made, ignored] = settings(config, KNOWN[role])
  const retry = given({ retries: made.retries, initialRetryTime: made.retry_backoff_ms })
  const client = new Kafka(given({ brokers: made.bootstrap.split(','), clientId: made.client_id ?? 'driver', logLevel: logLevel.NOTHING,
    requestTimeout: made.request_timeout_ms, retry: RETRIED.some(name => name in made) ? retry : undefined }))
  return [client, made, ignored]
}

class Producer {
  static async open (name, config) {
    const self = new Producer()
    const [client, made, ignored] = kafka(config, 'producer')
    const compression = oneOf(made.compression, CODECS, 'compression')
    Object.assign(self, { ignored, options: given({ acks: oneOf(made.acks, ACKS, 'acks'), compression }) })
    self.client = client.producer(given({ idempotent: made.idempotence, maxInFlightRequests: made.in_flight,
      metadataMaxAge: made.metadata_max_age_ms, transactionalId: made.transactional_id, transactionTimeout: made.transaction_timeout_ms,
      createPartitioner: kafkajs.Partitioners?.DefaultPartitioner }))
    await self.client.connect()
    return self
  }

  async append (command) {
    const headers = {}
    for (const [name, value] of command.headers ?? []) headers[name] = name in headers ? [headers[name], decoded(value)].flat() : decoded(value) // lists: from 1.16
    const message = given({ key: decoded(command.key), value: decoded(command.value), headers, partition: command.partition ?? undefined,
      timestamp: command.timestamp_ms === undefined || command.timestamp_ms === null ? undefined : String(command.timestamp_ms) })
    const said = await (this.transaction ?? this.client).send({ topic: command.topic, messages: [message], ...this.options })
    const one = said?.[0] ?? {}
    return { topic: command.topic, partition: one.partition ?? command.partition, offset: Number(one.baseOffset ?? one.offset ?? -1) }
  }

  async begin () { this.transaction = await this.client.transaction() }

  async commit_transaction () { await this.finished().commit() }

  async abort_transaction () { await this.finished().abort() }

  finished () {
    const { transaction } = this
    if (!transaction) throw new Error('no transaction was begun')
    this.transaction = undefined
    return transaction
  }

  async send_offsets (command) {
    const consumer = Consumer.named.get(command.consumer)
    if (!consumer || !this.transaction) throw new Refused('a consumer that is open, and a transaction', command.consumer)
    await this.transaction.sendOffsets({ consumerGroupId: consumer.group, topics: byTopic(command.offsets) })
  }

  async close () { await this.client.disconnect() }
}

function byTopic (offsets) {
  const topics = {}
  for (const one of offsets) (topics[one.topic] ??= []).push({ partition: one.partition, offset: String(one.offset) })
  return Object.entries(topics).map(([topic, partitions]) => ({ topic, partitions }))
}

class Consumer {
  static named = new Map()

  static async open (name, config) {
    const self = new Consumer()
    const [client, made, ignored] = kafka(config, 'consumer')
    const assigner = oneOf(made.assignor, ASSIGNORS, 'assignor')
    Object.assign(self, { name, ignored, made, group: made.group ?? `${name}-alone`, waiting: [], handed: new Map(), assigned: [],
      fromBeginning: oneOf(made.offset_reset, RESETS, 'offset_reset') ?? false, kafka: client })
    self.client = client.consumer(given({ groupId: self.group, partitionAssigners: assigner && [assigner],
      sessionTimeout: made.session_timeout_ms, heartbeatInterval: made.heartbeat_interval_ms, metadataMaxAge: made.metadata_max_age_ms,
      maxWaitTimeInMs: made.fetch_max_wait_ms, minBytes: made.fetch_min_bytes, maxBytes: made.fetch_max_bytes,
      readUncommitted: oneOf(made.isolation, ISOLATIONS, 'isolation') }))
    const { GROUP_JOIN, REBALANCING, CRASH } = self.client.events
    self.client.on(GROUP_JOIN, event => self.joined(event.payload))
    if (REBALANCING) self.client.on(REBALANCING, () => self.left())
    self.client.on(CRASH, ({ payload }) => happened('trouble', name, { error: { ...errorOf(payload.error), text: payload.error.message } }))
    await self.client.connect()
    Consumer.named.set(name, self)
    return self
  }

  joined (payload) {
    this.left()
    this.assigned = Object.entries(payload.memberAssignment ?? {}).flatMap(([topic, numbers]) => numbers.map(partition => ({ topic, partition })))
    happened('assigned', this.name, { partitions: this.assigned, generation: payload.generationId ?? null, member: payload.memberId })
  }

  left () {
    if (this.assigned.length) happened('revoked', this.name, { partitions: this.assigned })
    this.assigned = []
    this.handed.clear()
    this.drop(() => true)
  }

  /** Records that are waiting for a poll and must not be handed out any more. */
  drop (which) {
    for (const one of this.waiting.filter(which)) one.taken(false)
    this.waiting = this.waiting.filter(one => !which(one))
  }

  async subscribe (command) {
    for (const topic of command.topics) await this.client.subscribe({ topic, fromBeginning: this.fromBeginning })
    const { auto_commit: autoCommit, auto_commit_interval_ms: autoCommitInterval } = this.made
    await this.client.run(given({ autoCommit, autoCommitInterval, eachBatchAutoResolve: false, partitionsConsumedConcurrently: 64,
      eachBatch: batch => this.each(batch) }))
  }

  /** Keeps the library's handler waiting until a poll takes the record, and its membership alive meanwhile. */
  async each ({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
    for (const message of batch.messages) {
      if (!isRunning() || isStale()) return
      let settled
      const took = new Promise(resolve => this.waiting.push({ topic: batch.topic, partition: batch.partition, message, taken: resolve }))
      const watched = took.then(yes => { settled = true; return yes })
      while (!settled && !await Promise.race([watched, sleep(100)]) && !settled) await heartbeat()
      if (!await watched) return
      resolveOffset(message.offset)
      await heartbeat()
    }
  }

  async poll (command) {
    const more = () => {
      const one = this.waiting.shift()
      if (!one) return null
      one.taken(true)
      this.handed.set(`${one.topic}/${one.partition}`, { topic: one.topic, partition: one.partition, offset: Number(one.message.offset) + 1 })
      const headers = Object.entries(one.message.headers ?? {}).flatMap(([name, value]) => [value].flat().map(part => [name, encoded(part)]))
      return { topic: one.topic, partition: one.partition, offset: Number(one.message.offset), key: encoded(one.message.key),
        value: encoded(one.message.value), headers, timestamp_ms: Number(one.message.timestamp) }
    }
    more.empty = () => !this.waiting.length
    return { records: await taken(command, more) }
  }

  async seek (command) {
    this.client.seek({ topic: command.topic, partition: command.partition, offset: String(command.offset) })
    this.drop(one => one.topic === command.topic && one.partition === command.partition)
  }

  async commit (command) {
    if (command.mode !== 'sync') throw new Refused('the mode sync', command.mode)
    const offsets = command.offsets ?? [...this.handed.values()]
    if (offsets.length) await this.client.commitOffsets(offsets.map(one => ({ ...one, offset: String(one.offset) })))
    return { offsets }
  }

  async committed (command) {
    const admin = this.kafka.admin()
    await admin.connect()
    try {
      const offsets = []
      for (const { topic, partition } of command.partitions) {
        const said = await admin.fetchOffsets({ groupId: this.group, topic, topics: [topic] })
        const row = (said[0]?.partitions ?? said).find(one => one.partition === partition)
        offsets.push({ topic, partition, offset: Number(row?.offset ?? -1) })
      }
      return { offsets }
    } finally {
      await admin.disconnect()
    }
  }

  async close () {
    Consumer.named.delete(this.name)
    this.drop(() => true)
    await this.client.disconnect()
  }
}

class Admin {
  static async open (name, config) {
    const self = new Admin()
    const [client, , ignored] = kafka(config, 'admin')
    Object.assign(self, { ignored, client: client.admin() })
    await self.client.connect()
    return self
  }

  /** The library throws for all topics at once: each is asked for by itself. */
  async outcomes (topics, work) {
    const rows = []
    for (const name of topics) {
      rows.push(await work(name).then(fields => ({ name, error: null, ...fields }),
        error => ({ name, error: { fatal: false, ...errorOf(error), text: error.message } })))
    }
    return { topics: rows }
  }

  create_topics (command) {
    const byName = Object.fromEntries(command.topics.map(one => [one.name, one]))
    return this.outcomes(Object.keys(byName), async name => {
      const { partitions, replication_factor: replicationFactor, config } = byName[name]
      const configEntries = Object.entries(config ?? {}).map(([key, value]) => ({ name: key, value }))
      const topics = [{ topic: name, numPartitions: partitions, replicationFactor, configEntries }]
      if (await this.client.createTopics({ waitForLeaders: true, topics }) === false) {
        return { error: { name: 'createTopics answered false', code: null, text: 'the topic exists', fatal: false } }
      }
    })
  }

  delete_topics (command) {
    return this.outcomes(command.topics, async name => { await this.client.deleteTopics({ topics: [name] }) })
  }

  describe_topics (command) {
    return this.outcomes(command.topics, async name => {
      const { topics: [topic] } = await this.client.fetchTopicMetadata({ topics: [name] })
      const partitions = topic.partitions.map(one => ({ partition: one.partitionId, leader: one.leader, replicas: one.replicas, isr: one.isr }))
      return { partitions: partitions.sort((a, b) => a.partition - b.partition) }
    })
  }

  async describe_configs (command) {
    const { resources: [said] } = await this.client.describeConfigs({ includeSynonyms: false, resources: [{ type: TOPIC, name: command.topic }] })
    return { config: Object.fromEntries(said.configEntries.map(one => [one.configName, one.configValue])) }
  }

  async alter_configs (command) {
    const configEntries = Object.entries(command.config).map(([name, value]) => ({ name, value }))
    await this.client.alterConfigs({ validateOnly: false, resources: [{ type: TOPIC, name: command.topic, configEntries }] })
  }

  async close () { await this.client.disconnect() }
}

serve({ producer: Producer, consumer: Consumer, admin: Admin }, errorOf, {
  driver: 'kafkajs', library: 'kafkajs', version: require('kafkajs/package.json').version, codecs: Object.keys(CODECS), acks: [0, 1, -1],
  idempotence: true, transactions: true, assignors: Object.keys(ASSIGNORS), commit_modes: ['sync'],
  config: [...new Set(Object.values(KNOWN).flat())].filter(name => [...COMMON, ...PRODUCER, ...CONSUMER].includes(name))
})
