import test from 'ava'
import { GroupedOutput } from '../../../src/cli/output/grouped.ts'
import { entryOf, resultOf, taskOf } from '../../fixtures/fake-server.ts'
import { formatOptions } from '../../fixtures/format-options.ts'

test('equal output is folded under its node set, largest group first; stderr is printed live', async (t) => {
  const out = { text: '', write: (text: string) => void (out.text += text) }
  const err = { text: '', write: (text: string) => void (err.text += text) }
  const grouped = new GroupedOutput(formatOptions({ stdout: out, stderr: err }))
  const say = (host: string, data: string) => grouped.event({ type: 'output', entry: entryOf(host, data) })
  await say('web3', 'other')
  await say('web1', 'sa')
  await say('web2', 'same\n')
  await say('web1', 'me\n')
  await grouped.event({ type: 'output', entry: entryOf('web1', 'oops\n', { stream: 'stderr' }) })
  t.is(err.text, 'web1: oops\n')
  await grouped.end(taskOf([resultOf('web1')]))
  const rule = '-'.repeat(15)
  t.is(out.text, `${rule}\nweb[1-2] (2)\n${rule}\nsame\n${rule}\nweb3\n${rule}\nother\n`)
})
