import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { NamesCache } from '../../../src/cli/completion/names-cache.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const url = 'https://rsm.example.org'
const token = 'rsm_pat_of_ann'
const names = [{ name: 'web1', about: 'ONLINE' }]

function cacheOf(directory: string, clock: { now: number }, holder = token): NamesCache {
  return new NamesCache(url, holder, { XDG_CACHE_HOME: directory }, () => clock.now)
}

test('names are fresh for some seconds, and are used for minutes if the server does not answer', (t) => {
  const clock = { now: 1_000_000 }
  const cache = cacheOf(temporaryDirectory(t), clock)
  t.is(cache.read('hosts'), undefined)
  cache.write('hosts', names)
  t.deepEqual(cache.read('hosts'), { names, isFresh: true })
  clock.now += 11_000
  t.deepEqual(cache.read('hosts'), { names, isFresh: false })
  cache.failed('hosts')
  t.deepEqual(cache.read('hosts'), { names, isFresh: true })
  clock.now += 700_000
  t.is(cache.read('hosts'), undefined)
  cache.write('hosts', names)
  clock.now -= 3_600_000
  t.is(cache.read('hosts'), undefined)
})

test('a server that did not answer is not asked again at each key', (t) => {
  const cache = cacheOf(temporaryDirectory(t), { now: 1 })
  cache.failed('tasks')
  t.deepEqual(cache.read('tasks'), { names: [], isFresh: true })
})

test('S12 cache files are readable by their owner only, separate for each token, and hold no token', (t) => {
  const directory = temporaryDirectory(t)
  const clock = { now: 1 }
  cacheOf(directory, clock).write('hosts', names)
  const folder = join(directory, 'rsm/names')
  t.is(statSync(folder).mode & 0o777, 0o700)
  const files = readdirSync(folder)
  t.is(files.length, 1)
  for (const file of files) {
    t.is(statSync(join(folder, file)).mode & 0o777, 0o600)
    t.false(readFileSync(join(folder, file), 'utf8').includes(token))
  }
  t.is(cacheOf(directory, clock, 'rsm_pat_of_bob').read('hosts'), undefined)
})

test('a cache file that is broken, of another shape or huge is ignored and replaced', (t) => {
  const directory = temporaryDirectory(t)
  const cache = cacheOf(directory, { now: 1 })
  cache.write('hosts', names)
  const [file = ''] = readdirSync(join(directory, 'rsm/names'))
  const path = join(directory, 'rsm/names', file)
  const good = readFileSync(path, 'utf8')
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    good.replace('"web1"', '1'),
    good.replace('[{', '[['.repeat(9)),
    ' '.repeat(9e6),
  ]) {
    writeFileSync(path, text)
    t.is(cache.read('hosts'), undefined, text.slice(0, 80))
    cache.write('hosts', names)
    t.deepEqual(cache.read('hosts')?.names, names)
  }
})

test('a cache directory that cannot be written is ignored', (t) => {
  const directory = temporaryDirectory(t)
  const file = join(directory, 'file')
  writeFileSync(file, '')
  chmodSync(file, 0o400)
  const cache = cacheOf(file, { now: 1 })
  t.notThrows(() => cache.write('hosts', names))
  t.notThrows(() => cache.failed('hosts'))
  t.is(cache.read('hosts'), undefined)
})
