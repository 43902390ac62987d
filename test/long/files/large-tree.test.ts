import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import { copyFleet } from '../../helpers/agents/copy-fleet.ts'

const files = 10_000

test('a repeated rsm cp of a tree of 10,000 files changes nothing on any host', async (t) => {
  t.timeout(110_000)
  const { rsm, ours, theirs, there } = await copyFleet(t, 'web1', 'web2')
  const source = join(ours, 'site')
  for (let n = 0; n < 100; n += 1) mkdirSync(join(source, String(n)), { recursive: true })
  for (let n = 0; n < files; n += 1)
    writeFileSync(join(source, String(n % 100), String(n)), `${n}\n`.repeat(50))
  const copy = async (hosts: string, ...more: string[]): Promise<Task> => {
    const began = performance.now()
    const argv = ['cp', '-r', source, `${hosts}:${theirs}/%h`, '--json', ...more]
    const { exit, stdout, stderr } = await rsm(argv)
    t.is(exit, 0, stderr)
    t.log(`${files} files to ${hosts} ${more.join('')}: ${Math.round(performance.now() - began)} ms`)
    t.timeout(110_000)
    return JSON.parse(stdout) as Task
  }
  const changedBy = ({ results }: Task) => results.map(({ changed }) => changed)
  const both = 'web[1-2]'
  t.deepEqual(changedBy(await copy('web1')), [true])
  execFileSync('cp', ['-a', join(theirs, 'web1'), join(theirs, 'web2')])
  t.deepEqual(changedBy(await copy(both)), [false, false])
  t.deepEqual(changedBy(await copy(both, '--dry-run')), [false, false])
  writeFileSync(join(source, '7', '9907'), 'other\n')
  t.deepEqual(changedBy(await copy(both, '--dry-run')), [true, true])
  t.deepEqual(changedBy(await copy(both)), [true, true])
  for (const host of ['web1', 'web2']) {
    t.is(there(`${host}/7/9907`), 'other\n')
    t.is(there(`${host}/7/9807`), '9807\n'.repeat(50))
  }
})
