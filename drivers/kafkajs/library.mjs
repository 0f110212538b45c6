// What the library calls settings, values and errors.

import { createRequire } from 'node:module'
import { COMMON, given, settings } from './lines.mjs'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
export const require = createRequire(import.meta.url)
export const kafkajs = require('kafkajs')
const { Kafka, CompressionTypes, PartitionAssigners, logLevel } = kafkajs
export const TOPIC = (kafkajs.ConfigResourceTypes ?? kafkajs.ResourceTypes).TOPIC
export const CODECS = { none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP } // others need packages of other authors
export const ASSIGNORS = { roundrobin: PartitionAssigners.roundRobin }
export const ACKS = { 0: 0, 1: 1, '-1': -1 }
export const RESETS = { earliest: true, latest: false }
export const ISOLATIONS = { read_uncommitted: true, read_committed: false }
const RETRIED = ['retries', 'retry_backoff_ms']
export const KNOWN = {
  producer: [...COMMON.slice(0, 5), 'acks', 'idempotence', 'in_flight', 'compression', 'retries',
    'transactional_id',
    'transaction_timeout_ms'],
  consumer: [...COMMON.slice(0, 5), 'group', 'isolation', 'assignor', 'auto_commit',
    'auto_commit_interval_ms', 'session_timeout_ms',
    'heartbeat_interval_ms', 'offset_reset', 'fetch_max_wait_ms', 'fetch_min_bytes', 'fetch_max_bytes'],
  admin: COMMON.slice(0, 5)
}

export const errorOf = error => {
  const inner = error.errors?.[0] ?? (error.code === undefined ? error.cause ?? error : error)
  return { name: inner.type ?? error.name, code: Number.isInteger(inner.code) ? inner.code : null }
}

export function kafka (config, role) {
  const [made, ignored] = settings(config, KNOWN[role])
  const retry = given({ retries: made.retries, initialRetryTime: made.retry_backoff_ms })
  const client = new Kafka(given({ brokers: made.bootstrap.split(','), clientId: made.client_id ?? 'driver',
    logLevel: logLevel.NOTHING,
    requestTimeout: made.request_timeout_ms, retry: RETRIED.some(name => name in made) ? retry : undefined }))
  return [client, made, ignored]
}
