import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { appendFile, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { formatVersion } from '../../../src/server/storage/files/store/files.ts'
import { encodeLine } from '../../../src/server/storage/files/store/line.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import type { Store } from '../../../src/server/storage/ports/store.ts'
import { host, task } from '../../helpers/servers/store-records.ts'

const writerProgram = fileURLToPath(new URL('../../fixtures/store-writer.js', import.meta.url))
const writers = 8
/** The store's format as the manifest has it. */
const format = `"format":${formatVersion}`

async function temporary(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm faults-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Numbers in [0, 1) from a seed that the log prints, for repeating a run (mulberry32). */
function random(t: ExecutionContext): () => number {
  let state = Number(process.env['RSM_TEST_SEED'] ?? randomInt(2 ** 31))
  t.log(`RSM_TEST_SEED=${state}`)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Runs the writer and kills it this many milliseconds after it printed `from`; returns the last acknowledged turn per writer.
 */
async function writeAndKill(
  directory: string,
  compactAfterBytes: number,
  from: 'started' | 'open',
  milliseconds: number,
): Promise<Map<number, number>> {
  const args = [writerProgram, directory, String(writers), String(compactAfterBytes)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const acknowledged = new Map<number, number>()
  let killed: Promise<boolean> | null = null
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === from) killed = setTimeout(milliseconds).then(() => child.kill('SIGKILL'))
    const [writer, turn] = line.split(' ').map(Number)
    if (turn !== undefined) acknowledged.set(Number(writer), turn)
  }
  await killed
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return acknowledged
}

/** Every acknowledged write exists, and no transaction exists in part. */
async function check(t: ExecutionContext, store: Store, acknowledged: Map<number, number>): Promise<void> {
  for (let writer = 0; writer < writers; writer++) {
    const first = (await store.get('tasks', `${writer}/first`))?.pauseSeconds ?? 0
    const second = (await store.get('tasks', `${writer}/second`))?.pauseSeconds ?? 0
    t.true(first >= (acknowledged.get(writer) ?? 0), `writer ${writer} lost an acknowledged write`)
    t.is(first, second)
    for (let turn = Math.max(1, first - 24); turn <= first; turn++) {
      t.is((await store.get('tasks', `${writer}/turn/${turn % 50}`))?.pauseSeconds, turn)
    }
    if (first >= 50) t.is(await store.get('tasks', `${writer}/turn/${(first + 25) % 50}`), undefined)
  }
}

async function survivesKills(
  t: ExecutionContext,
  rounds: number,
  compactAfterBytes: number,
  longest: number,
) {
  const directory = await temporary(t)
  const next = random(t)
  let total = 0
  for (let round = 0; round < rounds; round++) {
    const acknowledged = await writeAndKill(directory, compactAfterBytes, 'open', 10 + next() * longest)
    const store = await openJsonStore({ directory })
    await check(t, store, acknowledged)
    total += [...acknowledged.values()].length
    await store.close()
  }
  t.true(total > 0)
}

test.serial(
  'F01 every acknowledged write survives kill -9 while 8 writers write, 20 rounds, and none is half written',
  (t) => survivesKills(t, 20, 1e9, 250),
)

test.serial('F02 no acknowledged write is lost by kill -9 while the journal is compacted repeatedly', (t) =>
  survivesKills(t, 12, 20_000, 200),
)

test.serial(
  'F02 kill -9 during the first start leaves a store for the next start, with every acknowledged write',
  async (t) => {
    const next = random(t)
    for (let round = 0; round < 15; round++) {
      const directory = await temporary(t)
      const acknowledged = await writeAndKill(directory, 1e9, 'started', next() * 25)
      const store = await openJsonStore({ directory })
      await check(t, store, acknowledged)
      await store.close()
    }
  },
)

/** A store with 20 hosts, of which the first 10 are in a snapshot, and the names of its files. */
async function filled(t: ExecutionContext) {
  const directory = await temporary(t)
  let store = await openJsonStore({ directory })
  for (let id = 1; id <= 10; id++) await store.transact((tx) => tx.put('hosts', host(id, `web${id}`)))
  await store.close()
  store = await openJsonStore({ directory, compactAfterBytes: 1 })
  // The compaction that starts immediately is done when the manifest names its snapshot.
  while (!(await readFile(join(directory, 'store.json'), 'utf8')).includes('"snapshot":10,'))
    await setTimeout(5)
  await store.close()
  store = await openJsonStore({ directory })
  for (let id = 11; id <= 20; id++) await store.transact((tx) => tx.put('hosts', host(id, `web${id}`)))
  await store.close()
  return {
    directory,
    journal: join(directory, 'journal-000000000011.jsonl'),
    snapshot: join(directory, 'snapshot-000000000010.jsonl'),
    manifest: join(directory, 'store.json'),
  }
}
type Filled = Awaited<ReturnType<typeof filled>>

const tails: Record<string, { harm: (files: Filled) => Promise<void>; left: number }> = {
  'half a line': {
    harm: ({ journal }) => appendFile(journal, '{"check":"0123456789abcdef","seq":21,"put'),
    left: 20,
  },
  'a last line cut short': {
    harm: async ({ journal }) => truncate(journal, (await readFile(journal)).length - 7),
    left: 19,
  },
  'a last line without its newline': {
    harm: async ({ journal }) => truncate(journal, (await readFile(journal)).length - 1),
    left: 19,
  },
  'zeros at the tail': { harm: ({ journal }) => appendFile(journal, Buffer.alloc(5000)), left: 20 },
  'half a line, then zeros': {
    harm: async ({ journal }) => {
      const { length } = await readFile(journal)
      await truncate(journal, length - 100)
      await truncate(journal, length)
    },
    left: 19,
  },
}

for (const [name, { harm, left }] of Object.entries(tails)) {
  test(`F03 ${name}: the tail is cut, kept aside and reported, and the store opens`, async (t) => {
    const files = await filled(t)
    await harm(files)
    const warnings: unknown[] = []
    let store = await openJsonStore({
      directory: files.directory,
      log: (level, ...said) => warnings.push(level, said),
    })
    t.is((await store.query('hosts')).items.length, left)
    t.is(warnings[0], 'warn')
    t.true((await readdir(files.directory)).some((file) => file.endsWith('.broken')))
    await store.transact((tx) => tx.put('hosts', host(99, 'web99')))
    await store.close()
    store = await openJsonStore({
      directory: files.directory,
      log: () => t.fail('the store is already repaired'),
    })
    t.is((await store.query('hosts')).items.length, left + 1)
    await store.close()
  })
}

async function flip(path: string, share: number): Promise<void> {
  const file = await readFile(path)
  const at = Math.floor(file.length * share)
  file[at] = (file[at] ?? 0) ^ 4
  await writeFile(path, file)
}

const damages: Record<string, (files: Filled) => Promise<string>> = {
  'one bit flipped in the middle of the journal': async ({ journal }) => (await flip(journal, 0.5), journal),
  'one bit flipped in the last line of the journal': async ({ journal }) => (
    await flip(journal, 0.99), journal
  ),
  'one bit flipped in the header of the journal': async ({ journal }) => (
    await flip(journal, 0.005), journal
  ),
  'a line missing from the journal': async ({ journal }) => {
    const lines = (await readFile(journal, 'utf8')).split('\n')
    lines.splice(4, 1)
    await writeFile(journal, lines.join('\n'))
    return journal
  },
  'zeros in the middle of the journal': async ({ journal }) => {
    const file = await readFile(journal)
    await writeFile(journal, file.fill(0, 1000, 1200))
    return journal
  },
  'the journal empty': async ({ journal }) => (await truncate(journal), journal),
  'the journal missing': async ({ journal }) => (await rm(journal), journal),
  'the journal of another store': async ({ journal, directory }) => {
    const other = join(directory, 'other')
    await (await openJsonStore({ directory: other })).close()
    await writeFile(journal, await readFile(join(other, 'journal-000000000001.jsonl')))
    return journal
  },
  'the snapshot missing': async ({ snapshot }) => (await rm(snapshot), snapshot),
  'the snapshot empty': async ({ snapshot }) => (await truncate(snapshot), snapshot),
  'the snapshot cut in a line': async ({ snapshot }) => (await truncate(snapshot, 1500), snapshot),
  'the snapshot cut after a line': async ({ snapshot }) => {
    const file = await readFile(snapshot)
    await truncate(snapshot, file.lastIndexOf(10, -2) + 1)
    return snapshot
  },
  'one bit flipped in the snapshot': async ({ snapshot }) => (await flip(snapshot, 0.5), snapshot),
  'the manifest missing': async ({ manifest }) => (await rm(manifest), manifest),
  'the manifest empty': async ({ manifest }) => (await truncate(manifest), manifest),
  'the manifest an old copy': async ({ manifest }) => {
    const { storeId } = JSON.parse(await readFile(manifest, 'utf8')) as { storeId: string }
    const old = { format: 1, storeId, snapshot: 0, journals: [1], previous: null }
    await writeFile(manifest, JSON.stringify(old))
    return manifest
  },
  'snapshots and journals all missing': async ({ directory, snapshot }) => {
    for (const name of await readdir(directory))
      if (/^(snapshot|journal)/.test(name)) await rm(join(directory, name))
    return snapshot
  },
}

for (const [name, harm] of Object.entries(damages)) {
  test(`F03 ${name}: the store refuses to start, names file and offset, and changes nothing`, async (t) => {
    const files = await filled(t)
    const culprit = await harm(files)
    const before = (await readdir(files.directory)).sort()
    const refused = await t.throwsAsync(openJsonStore({ directory: files.directory }), {
      instanceOf: RsmError,
    })
    t.is(refused.code, 'unavailable')
    t.true(refused.message.includes(culprit), refused.message)
    t.regex(refused.message, /byte \d+/)
    t.regex(refused.hint ?? '', /nothing was changed; run `rsm server doctor`, or restore a backup/)
    t.deepEqual((await readdir(files.directory)).sort(), before)
  })
}

test('F19 a store of a newer format is refused with a clear message', async (t) => {
  const { directory, manifest } = await filled(t)
  const text = (await readFile(manifest, 'utf8')).replace(format, `"format":${formatVersion + 1}`)
  await writeFile(manifest, text)
  await t.throwsAsync(openJsonStore({ directory }), {
    code: 'unavailable',
    message: new RegExp(`newer rsm \\(format ${formatVersion + 1}`),
  })
  await writeFile(manifest, text.replace(/"version":"[^"]*"/, '"version":"7.2.0"'))
  const named = await t.throwsAsync(openJsonStore({ directory }), { instanceOf: RsmError })
  t.true(
    named.message.endsWith(
      `newer rsm (7.2.0: format ${formatVersion + 1}; this version reads up to ${formatVersion})`,
    ),
    named.message,
  )
  t.regex(named.hint ?? '', /start rsm 7\.2\.0, or restore a backup/)
})

for (const where of ['journal', 'snapshot'] as const)
  test(`A17 F19 a store with records of an unknown kind in its ${where} is reported as newer, not as damaged, and stays unchanged`, async (t) => {
    const files = await filled(t)
    const path = files[where]
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
    const json =
      where === 'journal'
        ? JSON.stringify({ ...sequenceAfter(lines.at(-1)), put: { hovercrafts: [{ id: 1 }] } })
        : JSON.stringify({ noun: 'hovercrafts', records: [{ id: 1 }] })
    const added = encodeLine(json).trimEnd()
    await writeFile(
      path,
      `${[...lines.slice(0, where === 'journal' ? undefined : -1), added, ...(where === 'journal' ? [] : lines.slice(-1))].join('\n')}\n`,
    )
    const before = await readFile(path)
    const refused = await t.throwsAsync(openJsonStore({ directory: files.directory }), {
      instanceOf: RsmError,
    })
    t.is(
      refused.message,
      `${path} was written by a newer rsm (it has records of an unknown kind: hovercrafts)`,
    )
    t.notRegex(refused.message, /damaged/)
    t.regex(refused.hint ?? '', /start the newer rsm/)
    t.deepEqual(await readFile(path), before)
    const named = (await readFile(files.manifest, 'utf8')).replace(/"version":"[^"]*"/, '"version":"7.2.0"')
    await writeFile(files.manifest, named)
    await t.throwsAsync(openJsonStore({ directory: files.directory }), {
      message: /newer rsm \(7\.2\.0: it has records of an unknown kind/,
    })
  })

test('A17 F19 a store of an older format is read and keeps its format', async (t) => {
  const { directory, manifest } = await filled(t)
  const text = await readFile(manifest, 'utf8')
  t.true(text.includes(format))
  await writeFile(manifest, text.replace(format, '"format":2'))
  await (await openJsonStore({ directory })).close()
  t.is(await readFile(manifest, 'utf8'), text)
})

function sequenceAfter(line = ''): { seq: number } {
  return { seq: ((JSON.parse(line) as { seq?: number; first?: number }).seq ?? 0) + 1 }
}

test('F06 a second process that opens a store is refused, with the holder in the message', async (t) => {
  const directory = await temporary(t)
  const store = await openJsonStore({ directory })
  await t.throwsAsync(openJsonStore({ directory }), {
    code: 'conflict',
    message: new RegExp(`pid ${process.pid} since`),
  })
  await store.transact((tx) => tx.put('tasks', task('t1')))
  await store.close()
  const again = await openJsonStore({ directory })
  t.is((await again.query('tasks')).items.length, 1)
  await again.close()
})
