import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { commandLine } from '../../helpers/clients/command-line.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startPair } from '../../helpers/servers/linked-pair.ts'

/** Python 3: `width` processes that ignore TERM and keep replacing themselves with children in their own sessions. */
const storm = (width: number, marker: string) => `import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
print("${marker}", flush=True)
for chain in range(${width}):
  if os.fork() == 0:
    end = time.time() + 120
    while time.time() < end:
      if os.fork() != 0: os._exit(0)
      os.setsid()
      time.sleep(0.5)
    os._exit(0)
time.sleep(120)`

test('F14 no process of a script that forks and daemonises is alive 10 s after `rsm exec --timeout 2`', async (t) => {
  const { server } = await startPair(t)
  const rsm = commandLine(t, server)
  const marker = `rsm-daemon-${process.pid}-${Date.now()}`
  const script = `for i in 1 2 3; do ( setsid bash -c 'trap "" TERM HUP; exec <&- >&- 2>&-; exec -a ${marker} sleep 600' & ); done; sleep 600`
  const ran = await rsm(['exec', '--host', 'web1', '--timeout', '2', '--', script])
  t.is(ran.exit, 124, ran.stderr)
  t.regex(ran.stderr, /web1: TIMEOUT after 2 s/)
  await delay(10_000)
  t.is(spawnSync('pgrep', ['-f', `^${marker}`]).status, 1)
})

test('F14 the timeout ends 1,000 processes that fork endlessly, and other executions run meanwhile', async (t) => {
  const { server, hostId } = await startPair(t)
  const content = storm(1000, 'storm')
  const stormId = await startTask(server, [hostId], { script: { type: 'PYTHON', content }, timeout: 5 })
  const other = await startTask(server, [hostId], { script: { content: 'echo calm; exit 4' } })
  t.is((await finished(server, other)).results[0]?.exitCode, 4)
  const [result] = (await finished(server, stormId)).results
  t.like(result, { status: 'TIMEOUT', exitCode: -1, survivors: [], error: null })
})
