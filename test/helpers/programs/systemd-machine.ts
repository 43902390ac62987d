import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

/** A Debian with systemd, made by `.ci/systemd-root`. */
const root = process.env['RSM_SYSTEMD_ROOT'] ?? ''
/** Whether a machine can be booted: requires root. */
export const hasSystemdRoot = existsSync(join(root, 'lib/systemd/systemd')) && process.getuid?.() === 0

export interface Machine {
  /** Runs a script on the machine, as root; any exit code but the expected one fails the test. */
  readonly run: (script: string, exit?: number) => Promise<string>
}

/** Boots a machine: systemd as PID 1 of its own namespaces. */
export async function boot(t: ExecutionContext): Promise<Machine> {
  const disk = join(temporaryDirectory(t), 'disk')
  execFileSync('cp', ['-a', root, disk])
  const words = ['--mount', '--pid', '--fork', '--uts', '--ipc', '--cgroup', '--net', '--kill-child']
  const script = resolve('test/fixtures/boot-systemd.sh')
  const machine = spawn('unshare', [...words, 'bash', script, disk, resolve('.'), process.execPath], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.teardown(async () => {
    machine.kill('SIGKILL')
    if (machine.exitCode === null && machine.signalCode === null) await once(machine, 'exit')
  })
  const init = () =>
    readFileSync(`/proc/${machine.pid}/task/${machine.pid}/children`, 'utf8').trim().split(' ')[0] ?? ''
  const run = (text: string) =>
    new Promise<{ exit: number; out: string }>((ended) => {
      const inside = [
        '-t',
        init(),
        '-a',
        'env',
        '-i',
        'HOME=/root',
        'PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
      ]
      const child = execFile('nsenter', [...inside, 'bash', '-s'], (error, stdout, stderr) =>
        ended({ exit: error === null ? 0 : Number(error.code ?? 1), out: stdout + stderr }),
      )
      child.stdin?.end(text)
    })
  const deadline = Date.now() + 60_000
  for (;;) {
    const state = init() === '' ? '' : (await run('systemctl is-system-running')).out.trim()
    if (/^(running|degraded)/.test(state)) break
    if (Date.now() > deadline) throw new Error(`the machine does not come up: ${state}`)
    await delay(200)
  }
  return {
    async run(text, exit = 0) {
      const ran = await run(text)
      t.is(ran.exit, exit, `${text}\n${ran.out}`)
      return ran.out
    },
  }
}
