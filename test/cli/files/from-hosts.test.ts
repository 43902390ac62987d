import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import test from 'ava'
import type { BaseCommand } from '../../../src/cli/command/base-command.ts'
import { bring, shareOfEntries } from '../../../src/cli/files/from-hosts.ts'
import { rawHeader, tarOf } from '../../helpers/tar.ts'

/** A tar of files below more than `directories` directories, which have no entries of their own. */
function deepTree(directories: number): Buffer {
  const deep = 999
  const files = Array.from({ length: Math.ceil(directories / deep) + 1 }, (_, index) => {
    const name = `${index}/${'x/'.repeat(deep - 1)}x\0`
    const long = Buffer.alloc(Math.ceil(name.length / 512) * 512, name, 'latin1').fill(0, name.length)
    return [rawHeader('long', 'L', name.length), long, rawHeader('x', '0', 0)]
  })
  return Buffer.concat([...files.flat(), Buffer.alloc(1024)])
}

test("a tree with more entries than its host's share is refused before anything is written; other trees arrive", async (t) => {
  const target = mkdtempSync(join(tmpdir(), 'rsm-bring-'))
  t.teardown(() => rmSync(target, { recursive: true }))
  const done: string[] = []
  const command = {
    globals: { quiet: true },
    done: (line: string) => done.push(line),
  } as unknown as BaseCommand
  const trees = new Map([
    [1, deepTree(shareOfEntries(2))],
    [2, await tarOf([{ name: 'deep/way/file', content: '' }])],
  ])
  const files = {
    async fetched(_taskId: string, hostId: number) {
      const tar = trees.get(hostId) ?? Buffer.alloc(0)
      const sha256 = createHash('sha256').update(tar).digest('hex')
      return { size: tar.length, sha256, bytes: Readable.from([tar]) }
    },
  }
  const hosts = [1, 2].map((hostId) => ({ hostId, hostname: `web${hostId}`, path: '/srv/site', error: null }))
  const error = await t.throwsAsync(
    bring(command, files, { taskId: 'task', kind: 'TREE' }, hosts, { target, isFile: false }),
  )
  t.regex(
    error?.message ?? '',
    /^the files from web1 could not be written: .* 500,000 entries: .* fewer hosts/,
  )
  t.like(error, { code: 'usage' })
  t.deepEqual(readdirSync(target), ['web2'])
  t.deepEqual(readdirSync(join(target, 'web2/site/deep/way')), ['file'])
  t.is(done.length, 1)
})

test('hosts share the entry limit of a copy, and each gets enough for a usual tree', (t) => {
  t.deepEqual([1, 2, 10, 3000].map(shareOfEntries), [1_000_000, 500_000, 100_000, 10_000])
})
