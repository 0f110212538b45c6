// The driver of @platformatic/kafka.

import * as library from '@platformatic/kafka'
import { readFileSync } from 'node:fs'
import { COMMON, CONSUMER, PRODUCER, Refused, decoded, encoded, happened, oneOf, serve, settings, taken } from './lines.mjs'

// Releases from 2.0 on want Node 22 for this one function; with it they run on Node 20.
Promise.withResolvers ??= function () {
  const made = {}
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}
const { version } = JSON.parse(readFileSync(new URL('node_modules/@platformatic/kafka/package.json', import.meta.url)))
const TOPIC = library.ConfigResourceTypes.TOPIC
const SET = library.IncrementalAlterConfigOperationTypes?.SET ?? library.IncrementalAlterConfigTypes?.SET ?? 0
const has = name => library.compressionsAlgorithms?.[name].available !== false // zstd needs Node 22.15
const CODECS = Object.fromEntries(library.allowedCompressionsAlgorithms.filter(has).map(name => [name, name]))
const ASSIGNORS = { roundrobin: library.roundRobinAssigner ?? null }
if (library.cooperativeStickyAssigner) ASSIGNORS['cooperative-sticky'] = library.cooperativeStickyAssigner
const ACKS = { 0: 0, 1: 1, '-1': -1 }
const ISOLATIONS = { read_uncommitted: 0, read_committed: 1 }
const RESETS = { earliest: 'earliest', latest: 'latest', none: 'fail' }
const SHARED = ['bootstrap', 'client_id', 'request_timeout_ms', 'metadata_max_age_ms', 'retry_backoff_ms', 'extra']
const KNOWN = {
  producer: [...SHARED, 'acks', 'idempotence', 'compression', 'retries', 'transactional_id'],
  consumer: [...SHARED, 'group', 'group_instance_id', 'isolation', 'assignor', 'auto_commit', 'auto_commit_interval_ms',
    'session_timeout_ms', 'heartbeat_interval_ms', 'max_poll_interval_ms', 'offset_reset', 'fetch_max_wait_ms', 'fetch_min_bytes',
    'fetch_max_bytes'],
  admin: SHARED
}
const transactions = 'beginTransaction' in library.Producer.prototype

const given = fields => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** The innermost error that names one of Kafka's numbers, or the one at the top. */
function errorOf (error) {
  const all = []
  for (const queue = [error]; queue.length && all.length < 50;) {
    const one = queue.shift()
    all.push(one)
    queue.push(...(one.errors ?? []), ...(one.cause ? [one.cause] : []))
  }
  const numbered = all.find(one => Number.isInteger(one.apiCode))
  return { name: numbered?.apiId ?? all.at(-1).code ?? error.name, code: numbered?.apiCode ?? null, fatal: false }
}

function base (config, role) {
  const [made, ignored] = settings(config, KNOWN[role])
  const options = given({ clientId: made.client_id ?? 'driver', bootstrapBrokers: made.bootstrap.split(','), retries: made.retries,
    retryDelay: made.retry_backoff_ms, metadataMaxAge: made.metadata_max_age_ms, timeout: made.request_timeout_ms, ...made.extra })
  return [options, made, ignored]
}

class Producer {
  static async open (name, config) {
    const [options, made, ignored] = base(config, 'producer')
    const self = new Producer()
    self.options = given({ acks: oneOf(made.acks, ACKS, 'acks'), compression: oneOf(made.compression, CODECS, 'compression') })
    self.ignored = ignored
    self.client = new library.Producer(given({ ...options, ...self.options, idempotent: made.idempotence, transactionalId: made.transactional_id }))
    return self
  }

  async append (command) {
    const headers = new Map((command.headers ?? []).map(([name, value]) => [Buffer.from(name), decoded(value)]))
    const time = command.timestamp_ms
    const message = given({ topic: command.topic, key: decoded(command.key) ?? undefined, value: decoded(command.value) ?? undefined, headers,
      partition: command.partition ?? undefined, timestamp: time === undefined || time === null ? undefined : BigInt(time) })
    const said = await (this.transaction ?? this.client).send({ messages: [message], ...this.options })
    const one = said.offsets?.[0]
    return { topic: command.topic, partition: one?.partition ?? command.partition, offset: Number(one?.offset ?? -1) }
  }

  async begin () { this.transaction = await this.client.beginTransaction() }

  async commit_transaction () { await this.finished().commit() }

  async abort_transaction () { await this.finished().abort() }

  finished () {
    const { transaction } = this
    if (!transaction) throw new Error('no transaction was begun')
    this.transaction = undefined
    return transaction
  }

  async close () { await this.client.close() }
}

class Consumer {
  static async open (name, config) {
    const [options, made, ignored] = base(config, 'consumer')
    const assigner = oneOf(made.assignor, ASSIGNORS, 'assignor')
    const self = new Consumer()
    Object.assign(self, { name, ignored, made, handed: new Map(), assigned: [], topics: new Set() })
    self.client = new library.Consumer(given({ ...options, groupId: made.group ?? `${name}-alone`, groupInstanceId: made.group_instance_id,
      sessionTimeout: made.session_timeout_ms, heartbeatInterval: made.heartbeat_interval_ms, rebalanceTimeout: made.max_poll_interval_ms,
      maxWaitTime: made.fetch_max_wait_ms, minBytes: made.fetch_min_bytes, maxBytes: made.fetch_max_bytes,
      isolationLevel: oneOf(made.isolation, ISOLATIONS, 'isolation'), partitionAssigner: assigner ?? undefined,
      protocols: made.assignor && [{ name: made.assignor, version: 1 }] }))
    self.client.on('consumer:group:join', payload => self.joined(payload))
    self.client.on('consumer:group:leave', () => self.left([]))
    for (const event of ['consumer:heartbeat:error', 'consumer:group:autocommit:error']) {
      self.client.on(event, payload => self.trouble(payload?.error ?? payload))
    }
    return self
  }

  trouble (error) {
    if (error) happened('trouble', this.name, { error: { ...errorOf(error), text: String(error.message).slice(0, 2000) } })
  }

  joined (payload) {
    const assigned = (payload.assignments ?? this.client.assignments ?? []).flatMap(({ topic, partitions }) =>
      partitions.map(partition => ({ topic, partition })))
    this.left(assigned)
    this.assigned = assigned
    happened('assigned', this.name, { partitions: assigned, generation: this.client.generationId, member: payload.memberId })
  }

  left (kept) {
    const key = one => `${one.topic}/${one.partition}`
    const still = new Set(kept.map(key))
    const gone = this.assigned.filter(one => !still.has(key(one)))
    if (gone.length) happened('revoked', this.name, { partitions: gone })
    for (const one of gone) this.handed.delete(key(one))
    this.assigned = kept
  }

  async subscribe (command) {
    const { auto_commit: automatic = true, auto_commit_interval_ms: interval } = this.made
    const fallbackMode = oneOf(this.made.offset_reset ?? 'latest', RESETS, 'offset_reset')
    this.subscribed = true // a poll that comes while the group is being joined has no records, and is no mistake
    this.stream = await this.client.consume({ topics: command.topics, mode: 'committed', fallbackMode, autocommit: automatic && (interval ?? true) })
    this.stream.on('error', error => this.trouble(error))
    this.stream.on('readable', () => {}) // it fetches for a stream with a listener only
  }

  async poll (command) {
    if (!this.subscribed) throw new Error('not subscribed')
    const more = () => {
      const one = this.stream?.read()
      if (!one) return null
      const place = { topic: one.topic, partition: one.partition }
      this.handed.set(`${one.topic}/${one.partition}`, { ...place, offset: Number(one.offset) + 1, leaderEpoch: one.leaderEpoch ?? -1 })
      const headers = [...(one.headerEntries ?? one.headers?.entries() ?? [])].map(([name, value]) => [String(name), encoded(value)])
      return { ...place, offset: Number(one.offset), key: encoded(one.key), value: encoded(one.value), headers,
        timestamp_ms: Number(one.timestamp), leader_epoch: one.leaderEpoch ?? -1 }
    }
    more.empty = () => !this.stream?.readableLength
    return { records: await taken(command, more) }
  }

  async commit (command) {
    if (command.mode !== 'sync') throw new Refused('the mode sync', command.mode)
    const offsets = command.offsets ?? [...this.handed.values()]
    if (offsets.length) {
      await this.client.commit({ offsets: offsets.map(one => ({ leaderEpoch: -1, ...one, offset: BigInt(one.offset) })) })
    }
    return { offsets: offsets.map(({ topic, partition, offset }) => ({ topic, partition, offset })) }
  }

  async committed (command) {
    const topics = {}
    for (const one of command.partitions) (topics[one.topic] ??= []).push(one.partition)
    const asked = Object.entries(topics).map(([topic, partitions]) => ({ topic, partitions }))
    const said = await this.client.listCommittedOffsets({ topics: asked })
    return { offsets: asked.flatMap(({ topic, partitions }) => partitions.map((partition, place) => ({ topic, partition,
      offset: Number(said.get(topic)?.[place] ?? -1) }))) }
  }

  async close () {
    await this.stream?.close()
    await this.client.close(true)
  }
}

class Admin {
  static async open (name, config) {
    const [options, , ignored] = base(config, 'admin')
    const self = new Admin()
    Object.assign(self, { ignored, client: new library.Admin(options) })
    return self
  }

  /** The library throws for all topics at once: each is asked for by itself. */
  async outcomes (topics, work) {
    const rows = []
    for (const name of topics) {
      rows.push(await work(name).then(fields => ({ name, error: null, ...fields }), error => ({ name, error: { ...errorOf(error), text: error.message } })))
    }
    return { topics: rows }
  }

  create_topics (command) {
    const byName = Object.fromEntries(command.topics.map(one => [one.name, one]))
    return this.outcomes(Object.keys(byName), async name => {
      const { partitions, replication_factor: replicas, config } = byName[name]
      await this.client.createTopics({ topics: [name], partitions, replicas, configs: Object.entries(config ?? {}).map(([key, value]) => ({ name: key, value })) })
    })
  }

  delete_topics (command) {
    return this.outcomes(command.topics, async name => { await this.client.deleteTopics({ topics: [name] }) })
  }

  describe_topics (command) {
    return this.outcomes(command.topics, async name => {
      const said = await this.client.metadata({ topics: [name], forceUpdate: true })
      const partitions = said.topics.get(name).partitions.map(({ leader, replicas, isr }, partition) => ({ partition, leader, replicas, isr }))
      return { partitions }
    })
  }

  async describe_configs (command) {
    const [said] = await this.client.describeConfigs({ resources: [{ resourceType: TOPIC, resourceName: command.topic }] })
    return { config: Object.fromEntries(said.configs.map(one => [one.name, one.value])) }
  }

  async alter_configs (command) {
    const configs = Object.entries(command.config).map(([name, value]) => ({ name, value, configOperation: SET }))
    await this.client.incrementalAlterConfigs({ resources: [{ resourceType: TOPIC, resourceName: command.topic, configs }] })
  }

  async close () { await this.client.close() }
}

if (!transactions) for (const name of ['begin', 'commit_transaction', 'abort_transaction']) delete Producer.prototype[name]
for (const [role, command, does] of [[Consumer, 'committed', 'listCommittedOffsets'], [Admin, 'describe_configs', 'describeConfigs'],
  [Admin, 'alter_configs', 'incrementalAlterConfigs']]) {
  if (!(does in (role === Admin ? library.Admin : library.Consumer).prototype)) delete role.prototype[command]
}
serve({ producer: Producer, consumer: Consumer, admin: Admin }, errorOf, {
  driver: 'platformatic-kafka', library: '@platformatic/kafka', version, codecs: Object.keys(CODECS), acks: [0, 1, -1], idempotence: true,
  transactions, assignors: Object.keys(ASSIGNORS), commit_modes: ['sync'],
  config: [...new Set(Object.values(KNOWN).flat())].filter(name => [...COMMON, ...PRODUCER, ...CONSUMER].includes(name))
})
