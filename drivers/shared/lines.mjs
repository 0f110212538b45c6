// What the drivers in JavaScript share: lines in, lines out, commands handed on in order
// (docs/reference/drivers.md).
//
// A driver gives `serve` one class for each role, with `static async open(name, config)`. Methods have the
// names of
// commands, take the command and answer the fields of `done`, now or later.

export const COMMON = ['bootstrap', 'client_id', 'request_timeout_ms', 'metadata_max_age_ms',
  'retry_backoff_ms', 'extra']
export const PRODUCER = ['acks', 'idempotence', 'in_flight', 'linger_ms', 'batch_bytes', 'batch_records',
  'compression', 'retries',
  'delivery_timeout_ms', 'transactional_id', 'transaction_timeout_ms']
export const CONSUMER = ['group', 'group_instance_id', 'isolation', 'assignor', 'auto_commit',
  'auto_commit_interval_ms',
  'session_timeout_ms', 'heartbeat_interval_ms', 'max_poll_interval_ms', 'offset_reset', 'fetch_max_wait_ms',
    'fetch_min_bytes',
  'fetch_max_bytes', 'max_poll_records', 'rack']
const FIELDS = {
  append: ['topic', 'partition', 'key', 'value'], subscribe: ['topics'], assign: ['partitions'],
  pause: [], resume: [], poll: ['timeout_ms', 'max_records'], seek: ['topic', 'partition', 'offset'],
    position: ['topic', 'partition'],
  commit: ['mode', 'offsets'], committed: ['partitions'], create_topics: ['topics'],
    describe_topics: ['topics'],
  delete_topics: ['topics'], describe_configs: ['topic'], alter_configs: ['topic', 'config'], flush: [],
    begin: [],
  commit_transaction: [], abort_transaction: [], send_offsets: ['consumer', 'offsets']
}
// Their whole call reaches the library at once: the next command does not wait until they are done. All
// others may reach it in several steps, so later commands of the client wait. A role may have others in
// `static atOnce`.
const AT_ONCE = ['append', 'commit']
const MOST_LINE = 1 << 20
const MOST_CLIENTS = 64
const MOST_UNDER_WAY = 20_000
const MOST_TEXT = 2_000
const MOST_POLLED = 500_000

export class Refused extends Error {
  constructor (expected, seen) {
    super(expected)
    this.expected = expected
    this.seen = String(seen).slice(0, MOST_TEXT)
  }
}

export const now = () => Number(process.hrtime.bigint())
const wall = () => Date.now() * 1_000_000
export const encoded = value => value === null ||
  value === undefined ? null : Buffer.from(value).toString('base64')
export const decoded = value => value === null || value === undefined ? null : Buffer.from(value, 'base64')
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
export const text = words => String(words).slice(0, MOST_TEXT)
const write = event => process.stdout.write(JSON.stringify(event) + '\n')
export const happened = (event, client, fields) => write({ event, client, at_ns: now(), wall_ns: wall(),
  ...fields })

/** The settings that were given, and which of them this library does not have. */
export function settings (config, known) {
  const all = [...COMMON, ...PRODUCER, ...CONSUMER]
  const unknown = Object.keys(config).find(name => !all.includes(name))
  if (unknown) throw new Refused('one of ' + all.join(', '), unknown)
  const given = Object.entries(config).filter(([, value]) => value !== null)
  if (!config.bootstrap) throw new Refused('a bootstrap address', 'none')
  return [Object.fromEntries(given.filter(([name]) => known.includes(name))),
    given.map(([name]) => name).filter(name => !known.includes(name))]
}

/** What a value means to the library. Refuses one that it does not have; undefined is left to the library. */
export function oneOf (value, table, what) {
  if (value === undefined) return undefined
  if (!(value in table)) throw new Refused(`${what} of ${Object.keys(table)}`, value)
  return table[value]
}

/** Without what was not given, so that the library's own defaults count. */
export const given = fields => Object.fromEntries(Object.entries(fields).filter(([,
  value]) => value !== undefined))

/** A producer of a library with an object for each transaction; `beginning()` makes one. */
export class Transactional {
  /** Its transactional id ends what others have under way: these libraries ask for it in their begin. */
  async prepared () {
    if (this.transactional) this.first = await this.beginning()
    return this
  }

  async begin () {
    this.transaction = this.first ?? await this.beginning()
    this.first = undefined
  }

  async commit_transaction () { await this.ended(one => one.commit()) }

  async abort_transaction () { await this.ended(one => one.abort()) }

  /** A commit that failed leaves the transaction, so that it can be aborted. */
  async ended (end) {
    await end(this.begun())
    this.transaction = undefined
  }

  begun () {
    if (!this.transaction) throw new Error('no transaction was begun')
    return this.transaction
  }

  /** What appends go to. With a transactional id nothing is sent outside of a transaction, also after a begin
   * that failed: these libraries would send it as any other record. */
  sender () { return this.transactional ? this.begun() : this.client }
}

const sizeOf = record => [record.key, record.value, ...record.headers.flat()].reduce((sum, one) => sum +
  (one ?? '').length, 0)

/** What a library hands out and no poll has taken yet. take(more): `more()` is the next record or null. */
export async function taken (command, more) {
  const until = performance.now() + command.timeout_ms
  const records = []
  let size = 0
  const full = () => records.length >= Math.min(command.max_records, 1_000) || size > MOST_POLLED
  for (;;) {
    for (let record = full() ? null : more(); record; record = full() ? null : more()) {
      records.push(record)
      size += sizeOf(record) * 3 / 4
    }
    if (full() || performance.now() >= until) return records
    await sleep(records.length ? 0 : 2)
    if (records.length && more.empty()) return records
  }
}

/** Read commands until there are no more. roles: the class of each, by name. */
export async function serve (roles, errorOf, ready) {
  const clients = new Map()
  let underWay = 0
  const own = role => Object.keys(FIELDS).filter(name => name in role.prototype)
  const commands = [...new Set([...Object.values(roles).flatMap(own), 'open', 'close', 'clock',
    'quit'])].sort()
  for (const what of ['unhandledRejection', 'uncaughtException']) process.on(what,
    error => console.error(what, error))
  write({ event: 'ready', protocol: 1, runtime: 'node ' + process.versions.node, commands,
    roles: Object.keys(roles),
    now_ns: now(), wall_ns: wall(), ...ready })

  function refuse (command, error) {
    write({ event: 'refused', id: command?.id ?? null, command: text(command?.command),
      expected: error.expected ?? 'a command as one JSON object',
      seen: error.seen ?? text(error) })
  }

  function carryOut (command, work) {
    const began = { ns: 0 }
    underWay++
    const done = (error, fields) => {
      underWay--
      const ended = now()
      write({ event: 'done', id: command.id, client: command.client, command: command.command, ok: !error,
        invoked_ns: began.ns,
        completed_ns: ended, wall_ns: wall(), ...fields,
        ...(error ? { error: { code: null, fatal: false, ...errorOf(error),
          text: text(error.message ?? error) } } : {}) })
    }
    const failed = error => {
      if (!(error instanceof Refused)) return done(error)
      underWay--
      refuse(command, error)
    }
    try {
      work(began).then(fields => done(null, fields), failed)
    } catch (error) {
      failed(error)
    }
  }

  function take (command) {
    const { command: name, client, id } = command
    if (!commands.includes(name)) throw new Refused('one of ' + commands.join(', '), name)
    if (!Number.isInteger(id)) throw new Refused('an integer id', id)
    if (name === 'clock' || name === 'quit') {
      const at = now()
      write({ event: 'done', id, command: name, ok: true, invoked_ns: at, completed_ns: at, now_ns: at,
        wall_ns: wall() })
      return name === 'quit' && end()
    }
    for (const field of FIELDS[name] ?? []) {
      if (!(field in command)) throw new Refused(`the field ${field} of ${name}`, 'none')
    }
    if (underWay >= MOST_UNDER_WAY) throw new Refused(`at most ${MOST_UNDER_WAY} commands under way`, 'more')
    if (name === 'open') {
      const role = roles[command.role]
      if (!role ||
        typeof command.config !== 'object') {
        throw new Refused(`a role of ${Object.keys(roles)} and its config`, command.role)
      }
      if (typeof client !== 'string' || clients.has(client) || clients.size >= MOST_CLIENTS) {
        throw new Refused(`a name that is not open, of at most ${MOST_CLIENTS}`, client)
      }
      carryOut(command, began => {
        began.ns = now()
        const opening = role.open(client, command.config)
        clients.set(client, { role, opening, turn: opening })
        return opening.then(made => ({ ignored: made.ignored }),
          error => { clients.delete(client); throw error })
      })
      return
    }
    const known = clients.get(client)
    if (!known) throw new Refused(`a client of ${[...clients.keys()]}`, client)
    if (name !== 'close' &&
      !own(known.role).includes(name)) throw new Refused(`a command of ${own(known.role)}`, name)
    carryOut(command, began => {
      const called = known.turn.then(() => known.opening).then(made => {
        began.ns = now()
        return made[name](command)
      }).finally(() => { if (name === 'close') clients.delete(client) })
      if (!(known.role.atOnce ?? AT_ONCE).includes(name)) known.turn = called.catch(() => {})
      return called
    })
  }

  const end = () => process.stdout.write('', () => process.exit(0))
  let rest = []
  let size = 0
  process.stdin.on('end', end)
  process.stdin.on('data', chunk => {
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10)) {
      const line = Buffer.concat([...rest, chunk.subarray(0, at)])
      rest = []
      size = 0
      chunk = chunk.subarray(at + 1)
      let command
      try {
        command = JSON.parse(line)
        take(command)
      } catch (error) {
        refuse(command, error)
      }
    }
    rest.push(chunk)
    size += chunk.length
    if (size >= MOST_LINE) end()
  })
}
