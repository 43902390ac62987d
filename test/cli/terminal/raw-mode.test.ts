import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { type FakeAttachment, startFakeTerminal } from '../../helpers/terminals/fake-terminal.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'

/** Attaches `rsm terminal web1` on a terminal, and records the output of `stty` before and after. */
async function onTerminal(t: ExecutionContext, env: Record<string, string> = {}) {
  const server = await startFakeTerminal(t)
  const home = temporaryDirectory(t)
  const line = `stty -a >before; bash -c 'echo $$ >pid; exec ${rsm} terminal web1'; echo "exit $?"; stty -a >after`
  const pty = bashOnPty(t, line, home, { RSM_URL: server.url, RSM_TOKEN: 'secret', ...env })
  const client = await server.client()
  client.attached()
  client.send('TERMINAL_OUTPUT', { sequence: 0, data: '\u001b[?1049h\u001b[?1002hready' })
  await pty.shows(/ready/)
  const file = (name: string) => readFileSync(join(home, name), 'utf8')
  // The first line is the size.
  const modes = (name: string) => file(name).replace(/^.*\n/, '')
  return { server, pty, client, modes, pid: () => Number(file('pid')) }
}

const close = (client: FakeAttachment) =>
  client.send('TERMINAL_CLOSED', { exitCode: null, signal: 'SIGHUP', reason: null })

for (const [signal, exit] of [
  ['SIGTERM', 143],
  ['SIGHUP', 129],
  ['SIGINT', 130],
] as const)
  test(`F20 ${signal} ends the session and restores the terminal`, async (t) => {
    const { pty, client, modes, pid } = await onTerminal(t)
    process.kill(pid(), signal)
    await client.next('TERMINAL_CLOSE')
    close(client)
    await pty.ended
    await pty.shows(new RegExp(`exit ${exit}`))
    t.is(modes('after'), modes('before'))
    t.true(pty.shown.includes('\u001b[?1002l\u001b[?1049l'))
  })

test('F20 the terminal is restored after a crash', async (t) => {
  const crash = 'process.on("SIGUSR2",()=>{throw new Error("a crash for a test")})'
  const { pty, modes, pid } = await onTerminal(t, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crash)}`,
  })
  process.kill(pid(), 'SIGUSR2')
  await pty.ended
  await pty.shows(/\?1002l.*\?1049l[\s\S]*a crash for a test[\s\S]*exit [1-9]/)
  t.is(modes('after'), modes('before'))
})

test('every byte of the output passes unchanged, and so does every key except escapes', async (t) => {
  const { pty, client, modes } = await onTerminal(t)
  const output = 'a\nb\tc\r\n\u001b[38;2;1;2;3m漢字\u001b[0m\u001b]0;title\u0007'
  client.send('TERMINAL_OUTPUT', { sequence: 1, data: output })
  await pty.shows(/title.$/)
  t.true(pty.shown.endsWith(output))
  const keys = '\u0003\u001a\u0011\u0013\u001c\u0016\u0004é漢\u001b[200~~.\u001b[201~\u001b[<0;10;5M~'
  pty.type(keys)
  t.is(await client.inputTo('M~'), keys)
  pty.resize(90, 25)
  t.like(await client.next('TERMINAL_RESIZE'), { cols: 100, rows: 30 })
  t.like(await client.next('TERMINAL_RESIZE'), { cols: 90, rows: 25 })
  pty.type('\r~.')
  await client.next('TERMINAL_CLOSE')
  close(client)
  await pty.ended
  await pty.shows(/exit 255/)
  t.is(modes('after'), modes('before'))
})

test('a full disk under stdout ends the session, and is reported', async (t) => {
  const server = await startFakeTerminal(t)
  const home = temporaryDirectory(t)
  const line = `${rsm} terminal web1 -- make >/dev/full 2>err; echo "exit $?"`
  const pty = bashOnPty(t, line, home, { RSM_URL: server.url, RSM_TOKEN: 'secret' })
  const client = await server.client()
  client.attached()
  client.send('TERMINAL_OUTPUT', { sequence: 0, data: 'output' })
  await client.next('TERMINAL_CLOSE')
  close(client)
  await pty.shows(/exit 6/)
  t.regex(readFileSync(join(home, 'err'), 'utf8'), /cannot write the output: the disk is full/)
})

for (const [title, end, exit] of [
  ['exits', { exitCode: 7, signal: null, reason: null }, 7],
  ['is ended by a signal', { exitCode: null, signal: 'SIGKILL', reason: null }, 137],
] as const)
  test(`rsm exits with the shell's code and restores the terminal when the shell ${title}`, async (t) => {
    const { pty, client, modes } = await onTerminal(t)
    client.send('TERMINAL_CLOSED', end)
    await pty.ended
    await pty.shows(new RegExp(`\\?1002l.*\\?1049l[\\s\\S]*exit ${exit}`))
    t.is(modes('after'), modes('before'))
  })

test('watching that starts or ends while the connection is lost is announced after reconnecting', async (t) => {
  const { server, pty, client } = await onTerminal(t)
  client.socket.terminate()
  const second = await server.client()
  second.attached({ watchers: ['admin'] })
  await pty.shows(/admin reads along/)
  second.socket.terminate()
  const third = await server.client()
  third.attached({ watchers: [] })
  await pty.shows(/no one is watching/)
  third.send('TERMINAL_CLOSED', { exitCode: 0, signal: null, reason: null })
  await pty.ended
  t.is(pty.shown.split('admin reads along').length, 2)
})

test('a repeated refusal of the server during a session is printed once', async (t) => {
  const { pty, client } = await onTerminal(t)
  const message = 'input dropped on the host'
  for (let at = 0; at < 50; at++) client.send('ERROR', { code: 413, message, refId: null })
  client.send('TERMINAL_CLOSED', { exitCode: 0, signal: null, reason: null })
  await pty.ended
  t.is(pty.shown.split(message).length, 2)
})

test('the reason for the end of a session is printed on the restored screen', async (t) => {
  const { pty, client } = await onTerminal(t)
  client.send('TERMINAL_CLOSED', { exitCode: null, signal: null, reason: 'the agent was stopped' })
  t.is(await pty.ended, 0)
  t.regex(pty.shown, /\?1049l[\s\S]*rsm: the session was ended: the agent was stopped\r+\n[\s\S]*exit 255/)
})
