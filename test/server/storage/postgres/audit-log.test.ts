import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import { type AuditEntry, AuditVerifier, verifyAudit } from '../../../../src/core/audit.ts'
import { systemClock } from '../../../../src/disk/clock.ts'
import { sha256 } from '../../../../src/disk/digest.ts'
import { createLog } from '../../../../src/disk/log.ts'
import { openAuditLog } from '../../../../src/server/storage/postgres/audit-log.ts'
import { auditLogContract } from '../../../contracts/audit-log.ts'
import { auditDirectory, event, openLog, verified } from '../../../helpers/audit/audit-log.ts'
import { openDatabase } from '../../../helpers/servers/open-database.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../../helpers/servers/postgres.ts'
import { until } from '../../../helpers/until.ts'

const postgres = sharedPostgres()
const writerProgram = fileURLToPath(new URL('../../../fixtures/postgres-audit-writer.js', import.meta.url))
const log = createLog('ERROR')

const opened = (database: Parameters<typeof openAuditLog>[0]['database'], clock = systemClock) =>
  openAuditLog({ database, storeId: 'store-1', clock, log })

async function open(t: ExecutionContext) {
  const url = await (await postgres).database()
  const database = openDatabase(t, url)
  return { url, database, audit: await opened(database) }
}

auditLogContract(test, async (t) => {
  const { database, audit } = await open(t)
  return { log: audit, reopen: () => opened(database) }
})

/**
 * Starts one writer per name, kills all once each has printed at least `least` lines, and returns each one's lines.
 */
async function writeAndKill(url: string, names: readonly string[], least: number): Promise<string[][]> {
  const writers = names.map((name) =>
    spawn(process.execPath, [writerProgram, url, name, '20'], { stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  let slower = writers.length
  return Promise.all(
    writers.map(async (child) => {
      const exit = once(child, 'exit')
      const lines: string[] = []
      for await (const line of createInterface({ input: child.stdout })) {
        lines.push(line)
        if (lines.length === least && --slower === 0) for (const writer of writers) writer.kill('SIGKILL')
      }
      await exit
      return lines
    }),
  )
}

test('F01 three servers killed while they append leave one chain without a gap, each in its own order', async (t) => {
  const { url, database, audit } = await open(t)
  const names = ['a', 'b', 'c']
  const noted: string[][] = []
  for (let round = 0; round < 2; round++)
    noted.push(
      ...(await writeAndKill(
        url,
        names.map((name) => `${name}${round}`),
        60 + round * 37,
      )),
    )
  const begun = `select from pg_stat_activity where datname = current_database() and application_name ~ '^rsm [abc]\\d'`
  await until(
    'their pending statements have ended',
    async () => (await database.ask('api', begun)).length === 0,
  )
  const after = await audit.append(event('after'))
  t.deepEqual(await verified(audit), { entries: after.id, fault: null })
  for (const line of noted.map((lines) => lines.at(-1) ?? '')) {
    const [id, hash = ''] = line.split(' ')
    const verifier = new AuditVerifier(sha256, { id: Number(id), hash })
    t.is(await verifyAudit(audit.raw(), verifier), null, `the reported head: ${line}`)
  }
  const calls = new Map<string, number[]>()
  const lines = (await text(audit.raw({ action: 'a' }))).split('\n').slice(0, -1)
  for (const { detail } of lines.map((line) => JSON.parse(line) as AuditEntry)) {
    const { name, call } = detail
    calls.set(String(name), [...(calls.get(String(name)) ?? []), Number(call)])
  }
  t.is(calls.size, 6)
  for (const [name, of] of calls)
    t.deepEqual(
      of,
      Array.from({ length: of.length }, (_, at) => at + 1),
      `calls of ${name}`,
    )
})

test('an export is byte for byte the log of a server without PostgreSQL for the same events', async (t) => {
  const at = Date.parse('2026-11-21T10:00:00.000Z')
  const clock = { now: () => at, monotonic: () => at }
  const { database } = { database: openDatabase(t, await (await postgres).database()) }
  const audit = await opened(database, clock)
  const inFile = await openLog(await auditDirectory(t), { clock })
  t.teardown(() => inFile.close())
  const odd = 'ü"\\\\u0000\\\u0000\u0001\u2028\ud800 \u{1f600}\r\n'
  for (const sink of [audit, inFile]) {
    for (let n = 0; n < 50; n++) await sink.append(event('a', { detail: { n, list: ['x', odd] } }))
    await sink.append(
      event(odd, {
        actor: { type: 'agent', id: odd, name: odd, tokenId: null },
        object: { type: 'host', id: odd, name: null },
        outcome: 'REFUSED',
        at: '2026-11-21T09:59:59.999Z',
        detail: { yes: true, no: null, rest: 1.5e-7 },
      }),
    )
    await sink.append(event('huge', { detail: { message: '€'.repeat(10_000) } }))
  }
  t.is(await text(audit.raw()), await text(inFile.raw()))
  t.deepEqual(await audit.head(), await inFile.head())
  for (const query of [{ action: odd }, { actor: odd }, { objectId: odd, outcome: 'REFUSED' as const }])
    t.deepEqual(await audit.list(query), await inFile.list(query))
})

test('servers that start at the same time begin the log only once', async (t) => {
  const url = await (await postgres).database()
  const servers = ['a', 'b', 'c', 'd'].map((name) => openDatabase(t, url, name))
  const [audit] = await Promise.all(servers.map((database) => opened(database)))
  t.deepEqual(audit && (await verified(audit)), { entries: 1, fault: null })
})

test('S11 damaged or removed entries are neither repaired nor hidden: lists show them and the verifier locates them', async (t) => {
  const { database, audit } = await open(t)
  for (let n = 0; n < 20; n++) await audit.append(event('a'))
  const garbage = Buffer.from('not\n\xff what was there', 'latin1')
  await database.ask('api', 'update rsm.audit set line = null, damaged = $1 where id = 5', [garbage])
  t.like((await verified(audit)).fault, { kind: 'unreadable', line: 5 })
  await database.ask('api', `update rsm.audit set line = '{"id":9}' where id = 9`)
  for (const query of [{ size: 50 }, { action: 'audit.unreadable' }]) {
    const { content } = await audit.list(query)
    const damaged = content.filter(({ action }) => action === 'audit.unreadable')
    t.deepEqual(
      damaged.map(({ id, outcome, detail }) => [id, outcome, detail['row'], detail['bytes']]),
      [
        [9, 'FAILED', 9, 8],
        [5, 'FAILED', 5, garbage.length],
      ],
    )
  }
  t.true((await text(audit.raw())).includes('not\n'))
  await t.throwsAsync(database.ask('api', `update rsm.audit set line = '{"id":' where id = 9`))
})

test('S11 an entry changed in the database breaks the chain and is found by its new content', async (t) => {
  const { database, audit } = await open(t)
  for (let n = 0; n < 5; n++) await audit.append(event('a'))
  await database.ask('api', `update rsm.audit set line = replace(line, 'admin', 'other') where id = 3`)
  t.like((await verified(audit)).fault, { kind: 'changed', line: 3 })
  t.is((await audit.list({ actor: 'other' })).totalElements, 1)
  await database.ask('api', 'delete from rsm.audit where id = 2')
  t.like((await verified(audit)).fault, { kind: 'removed', line: 2 })
  await t.throwsAsync(database.ask('api', `update rsm.audit set action = '"b"'`), {
    message: /updated to DEFAULT/,
  })
})

test('without PostgreSQL, entries are refused; later the log continues and records how many', async (t) => {
  const own = await startPostgres(atExit)
  const database = openDatabase(t, await own.database())
  const audit = await opened(database)
  await audit.append(event('before'))
  own.stop('immediate')
  const refused = await Promise.allSettled([audit.append(event('b')), audit.append(event('c'))])
  for (const result of refused) t.like(result, { status: 'rejected', reason: { code: 'unavailable' } })
  t.is(audit.refusal, 'the store cannot be reached just now')
  own.start()
  await audit.append(event('after'))
  t.is(audit.refusal, null)
  await audit.close()
  const { content } = await audit.list({})
  t.deepEqual(
    content.map(({ id, action }) => `${id} ${action}`),
    ['4 audit.resume', '3 after', '2 before', '1 audit.begin'],
  )
  t.is(content[0]?.detail['refused'], 2)
  t.deepEqual(await verified(audit), { entries: 4, fault: null })
})
