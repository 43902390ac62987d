import { readdirSync, readFileSync } from 'node:fs'
import test, { type ExecutionContext } from 'ava'
import { plainAgent } from '../../helpers/agents/plain-agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'

const asRoot = process.getuid?.() === 0 ? test : test.skip // Only root may start an agent of another user.

/** The processes with this argument at the end. */
function running(needle: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(`${needle}\0`)
      } catch {
        return false
      }
    })
    .map(Number)
}

/** Runs a script under an agent without cgroups until it prints `up`, and cancels it. `NEEDLE` in it names its processes. */
async function cancelled(t: ExecutionContext, script: string) {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  await plainAgent(t, server)
  await server.linked()
  t.is(server.hellos[0]?.capabilities.containment, 'process-group')
  const needle = `rsm-stray-${process.pid}-${Date.now()}`
  t.teardown(() => {
    for (const pid of running(needle)) process.kill(pid, 'SIGKILL')
  })
  server.execute('plain', { taskId: 'task', script: script.replaceAll('NEEDLE', needle), workDir: '/' })
  await server.until(() => server.text('task').includes('up\n'), 'the script is up')
  t.not(running(needle).length, 0)
  server.send('CANCEL_SCRIPT', { taskId: 'task' })
  const complete = await server.completed('task')
  t.is(complete.status, 'CANCELLED')
  return { complete, left: running(needle).length }
}

asRoot(
  'A07 without a cgroup a process that clears its environment and leaves session and parents is traced by its output',
  async (t) => {
    const { left } = await cancelled(
      t,
      `env -i setsid bash -c "exec -a NEEDLE sleep 600 & disown; exit" &
wait
env -i /usr/bin/setsid -f bash -c "exec -a NEEDLE sleep 600"
sleep 0.5; echo up; sleep 100`,
    )
    t.is(left, 0)
  },
)

asRoot('A07 without a cgroup a process that leaves its parents after a scan is ended too', async (t) => {
  const { left } = await cancelled(
    t,
    `( env -i setsid bash -c 'exec </dev/null >/dev/null 2>&1; exec -a NEEDLE sleep 600' & sleep 4 ) &
wait
echo up; sleep 100`,
  )
  t.is(left, 0)
})

asRoot(
  'A07 without a cgroup a result does not claim that no process remains if that is unknown',
  async (t) => {
    const { complete, left } = await cancelled(
      t,
      `env -i /usr/bin/setsid -f bash -c 'exec </dev/null >/dev/null 2>&1; exec -a NEEDLE sleep 600'
sleep 0.5; echo up; sleep 100`,
    )
    t.is(left, 1)
    t.is(complete.survivors, undefined)
    t.is(complete.error, 'processes that left their parents are not known')
  },
)
