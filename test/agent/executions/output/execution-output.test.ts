import { appendFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { ExecutionOutput } from '../../../../src/agent/executions/output/execution-output.ts'
import { linkedAgent, temporaryDirectory } from '../../../helpers/agents/agent.ts'

function all(output: ExecutionOutput): string {
  let text = ''
  for (let sequence = 0; sequence < output.count; sequence += 1)
    text += output.read(sequence).content.toString()
  return text
}

test('a character is never split between two chunks', async (t) => {
  const directory = await temporaryDirectory(t)
  const output = new ExecutionOutput(directory, 1 << 20, false)
  const bytes = Buffer.from('aé€😀z')
  for (let at = 0; at < bytes.length; at += 1) {
    appendFileSync(`${directory}/stdout`, bytes.subarray(at, at + 1))
    output.cut()
  }
  t.is(output.count, 5)
  t.is(output.finish().lastSequence, 4)
  t.is(all(output), 'aé€😀z')
  output.close()
})

test('bytes that are not UTF-8 become U+FFFD, including an incomplete end', async (t) => {
  const directory = await temporaryDirectory(t)
  const output = new ExecutionOutput(directory, 1 << 20, false)
  appendFileSync(`${directory}/stdout`, Buffer.from([0x61, 0xff, 0x62, 0xe2, 0x82]))
  t.true(output.cut())
  t.is(output.read(0).content.toString(), 'a\uFFFDb')
  output.finish()
  t.is(all(output), 'a\uFFFDb\uFFFD')
  output.close()
})

test('a reopened index gives the same chunks', async (t) => {
  const directory = await temporaryDirectory(t)
  const first = new ExecutionOutput(directory, 1 << 20, false)
  for (const piece of ['one', 'two', 'three']) {
    appendFileSync(`${directory}/stdout`, piece)
    first.cut()
  }
  first.close()
  appendFileSync(`${directory}/stderr`, 'four')
  const second = new ExecutionOutput(directory, 1 << 20, false)
  t.is(second.count, 3)
  second.finish()
  t.deepEqual(
    [0, 1, 2, 3].map((sequence) => second.read(sequence).content.toString()),
    ['one', 'two', 'three', 'four'],
  )
  second.close()
})

test('output past the limit keeps its head and tail, with a marker between', async (t) => {
  const directory = await temporaryDirectory(t)
  const output = new ExecutionOutput(directory, 1000, false)
  appendFileSync(`${directory}/stdout`, 'h'.repeat(800))
  while (output.cut());
  t.is(all(output).length, 500)
  appendFileSync(`${directory}/stdout`, 'm'.repeat(5000) + 't'.repeat(500))
  const summary = output.finish()
  t.true(summary.truncated)
  t.is(summary.stdoutBytes, 6300)
  t.is(
    all(output),
    `${'h'.repeat(500)}\n[rsm: 5300 bytes left out here: the output passed its limit]\n${'t'.repeat(500)}`,
  )
  output.close()
})

test('output of exactly the limit is not cut', async (t) => {
  const directory = await temporaryDirectory(t)
  const output = new ExecutionOutput(directory, 1000, false)
  appendFileSync(`${directory}/stdout`, 'x'.repeat(600))
  appendFileSync(`${directory}/stderr`, 'y'.repeat(400))
  t.false(output.finish().truncated)
  t.is(all(output).length, 1000)
  output.close()
})

test('the first output is sent at once, while the script runs', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.execute(agent.agentId, { taskId: 'live', script: 'printf prompt; sleep 600' })
  await server.until(() => server.text('live') === 'prompt', 'the first bytes')
  t.is(server.of('live').completes.length, 0)
  server.send('CANCEL_SCRIPT', { taskId: 'live' })
  await server.completed('live')
})

test('at most 1 MiB of output is unacknowledged, and sending continues after an acknowledgement', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.acksOutput = false
  const script = 'head -c 5000000 /dev/zero | tr "\\0" x'
  server.execute(agent.agentId, { taskId: 'window', script })
  await server.until(() => server.text('window').length >= 1 << 20, 'the window is full')
  server.send('EXECUTE_SCRIPT', server.request(agent.agentId, { taskId: 'other', script: 'sleep 0.3' }))
  server.of('other')
  await server.completed('other')
  t.true(server.text('window').length < (1 << 20) + 65_536)
  server.acksOutput = true
  server.send('SCRIPT_ACK', { taskId: 'window', sequence: server.stored('window') })
  await server.completed('window')
  t.is(server.text('window').length, 5_000_000)
})

test('a script that truncates its output by `> /dev/stdout` loses nothing already sent', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const seen = (step: string) => `while [ ! -e ${dataDir}/${step} ]; do sleep 0.02; done`
  const steps = [1, 2, 3].flatMap((i) => [`kept ${i}`, `named ${i}`])
  const script = steps
    .map((step, at) => `echo "${step}"${at % 2 ? ' > /dev/stdout' : ''}; ${seen(String(at))}`)
    .join('\n')
  server.execute(agent.agentId, { taskId: 'emptied', script })
  for (const [at, step] of steps.entries()) {
    await server.until(() => server.text('emptied').includes(step), `${step} arrives`)
    await writeFile(join(dataDir, String(at)), '')
  }
  const complete = await server.completed('emptied')
  t.is(server.text('emptied'), [1, 2, 3].map((i) => `kept ${i}\nnamed ${i}\n`).join(''))
  t.is(complete.stdoutBytes, 45)
})

test('bytes that a script truncates unread count as written, so the output does not look complete', async (t) => {
  const directory = await temporaryDirectory(t)
  const stdout = join(directory, 'stdout')
  const first = new ExecutionOutput(directory, 1 << 20, false)
  appendFileSync(stdout, 'kept')
  t.true(first.cut())
  appendFileSync(stdout, ' unread')
  first.bound()
  await writeFile(stdout, 'new')
  t.true(first.cut())
  t.is(all(first), 'new', 'the new text is not taken for the old one')
  first.close()
  // The next agent also counts them.
  const second = new ExecutionOutput(directory, 1 << 20, false)
  const summary = second.finish()
  t.is(summary.stdoutBytes, 'kept unread'.length + 'new'.length)
  t.is(second.read(1).content.toString(), 'new')
  second.close()
})

test('10 MB without a line end, NUL bytes and an incomplete end arrive unchanged', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const script = "head -c 10000000 /dev/zero | tr '\\0' x; printf 'a\\0b'; printf '\\342\\202' >&2"
  server.execute(agent.agentId, { taskId: 'long', script })
  const complete = await server.completed('long')
  t.is(complete.stdoutBytes, 10_000_003)
  t.true(server.text('long') === `${'x'.repeat(10_000_000)}a\0b`)
  t.is(server.text('long', 'stderr'), '\uFFFD')
  t.is(complete.stderrBytes, 2)
})
