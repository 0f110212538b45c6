// The driver of @platformatic/kafka.

import * as library from '@platformatic/kafka'
import { COMMON, CONSUMER, PRODUCER, Transactional, serve } from './lines.mjs'
import { Admin } from './admin.mjs'
import { Consumer } from './consumer.mjs'
import { ASSIGNORS, CODECS, KNOWN, errorOf, transactions, version } from './library.mjs'
import { Producer } from './producer.mjs'

if (!transactions) for (const name of ['begin', 'commit_transaction',
  'abort_transaction']) delete Transactional.prototype[name]
for (const [role, command, does] of [[Consumer, 'committed', 'listCommittedOffsets'],
  [Admin, 'describe_configs', 'describeConfigs'],
  [Admin, 'alter_configs', 'incrementalAlterConfigs']]) {
  if (!(does in (role === Admin ? library.Admin : library.Consumer).prototype)) delete role.prototype[command]
}
serve({ producer: Producer, consumer: Consumer, admin: Admin }, errorOf, {
  driver: 'platformatic-kafka', library: '@platformatic/kafka', version, codecs: Object.keys(CODECS),
    acks: [0, 1, -1], idempotence: true,
  transactions, assignors: Object.keys(ASSIGNORS), commit_modes: ['sync'],
  config: [...new Set(Object.values(KNOWN).flat())].filter(name => [...COMMON, ...PRODUCER,
    ...CONSUMER].includes(name))
})
