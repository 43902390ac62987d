import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test from 'ava'
import { logLineForPeople } from '../../../src/core/text/printable.ts'

const at = '2026-11-22T07:43:14.470Z'
const clock = new Date(at).toTimeString().slice(0, 8)
const line = (more: object) => JSON.stringify({ level: 40, time: at, ...more })

test('A16 a log line for people has time, level, message and fields, and never moves the cursor', (t) => {
  const more = { code: 1006, path: '/x y', list: [1], msg: 'no link\u001b[2J\nat all' }
  t.is(
    logLineForPeople(line(more), false),
    `${clock} WARN  no link\ufffd[2J at all  code=1006  path="/x y"  list=[1]`,
  )
  const err = { type: 'Error', message: 'it is full', stack: 'Error: it is full\n    at a (b:1)\n    at c' }
  t.is(
    logLineForPeople(line({ err, msg: 'failed' }), true),
    `${clock} \u001b[33mWARN \u001b[0m failed  error="it is full"\n    at a (b:1)\n    at c`,
  )
})

test('A16 server and agent write the same lines', async (t) => {
  const logs = ['disk/log.js', 'agent/log.js'].map(
    (file) => new URL(`../../../src/${file}`, import.meta.url).href,
  )
  const program = `const { createLog } = await import('${logs[0]}'); const { stderrLog } = await import('${logs[1]}')
createLog('INFO').warn({ code: 7 }, 'a "line"'); stderrLog('WARN', 'a "line"', { code: 7 })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', (data: Buffer) => (said += data.toString()))
  await once(child, 'close')
  const lines = said.trim().split('\n')
  t.is(lines.length, 2, said)
  const withoutTime = lines.map((text) => text.replace(/"time":"[^"]+"/, '"time":""'))
  t.is(withoutTime[0], withoutTime[1])
  t.is(withoutTime[0], '{"level":40,"time":"","code":7,"msg":"a \\"line\\""}')
})
