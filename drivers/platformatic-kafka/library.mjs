// What the library calls settings, values and errors.

import * as library from '@platformatic/kafka'
import { readFileSync } from 'node:fs'
import { given, settings } from './lines.mjs'

// Releases from 2.0 on want Node 22 for this one function; with it they run on Node 20.
Promise.withResolvers ??= function () {
  const made = {}
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}
export const { version } = JSON.parse(readFileSync(new URL('node_modules/@platformatic/kafka/package.json',
  import.meta.url)))
export const TOPIC = library.ConfigResourceTypes.TOPIC
export const SET = library.IncrementalAlterConfigOperationTypes?.SET ??
  library.IncrementalAlterConfigTypes?.SET ?? 0
export const has = name => library.compressionsAlgorithms?.[name].available !== false // zstd needs Node 22.15
export const CODECS = Object.fromEntries(library.allowedCompressionsAlgorithms.filter(has).map(name => [name,
  name]))
export const ASSIGNORS = { roundrobin: library.roundRobinAssigner ?? null }
if (library.cooperativeStickyAssigner) ASSIGNORS['cooperative-sticky'] = library.cooperativeStickyAssigner
export const ACKS = { 0: 0, 1: 1, '-1': -1 }
export const ISOLATIONS = { read_uncommitted: 0, read_committed: 1 }
export const RESETS = { earliest: 'earliest', latest: 'latest', none: 'fail' }
const SHARED = ['bootstrap', 'client_id', 'request_timeout_ms', 'metadata_max_age_ms', 'retry_backoff_ms',
  'extra']
export const KNOWN = {
  producer: [...SHARED, 'acks', 'idempotence', 'compression', 'retries', 'transactional_id'],
  consumer: [...SHARED, 'group', 'group_instance_id', 'isolation', 'assignor', 'auto_commit',
    'auto_commit_interval_ms',
    'session_timeout_ms', 'heartbeat_interval_ms', 'max_poll_interval_ms', 'offset_reset',
      'fetch_max_wait_ms', 'fetch_min_bytes',
    'fetch_max_bytes'],
  admin: SHARED
}
export const transactions = 'beginTransaction' in library.Producer.prototype

/** The innermost error that names one of Kafka's numbers, or the one at the top. */
export function errorOf (error) {
  const all = []
  for (const queue = [error]; queue.length && all.length < 50;) {
    const one = queue.shift()
    all.push(one)
    queue.push(...(one.errors ?? []), ...(one.cause ? [one.cause] : []))
  }
  const numbered = all.find(one => Number.isInteger(one.apiCode))
  return { name: numbered?.apiId ?? all.at(-1).code ?? error.name, code: numbered?.apiCode ?? null,
    fatal: false }
}

export function base (config, role) {
  const [made, ignored] = settings(config, KNOWN[role])
  const options = given({ clientId: made.client_id ?? 'driver', bootstrapBrokers: made.bootstrap.split(','),
    retries: made.retries,
    retryDelay: made.retry_backoff_ms, metadataMaxAge: made.metadata_max_age_ms,
      timeout: made.request_timeout_ms, // of the broker; a consumer's JoinGroup waits for longer
    requestTimeout: role === 'producer' ? made.request_timeout_ms : undefined, ...made.extra })
  return [options, made, ignored]
}
