import { spawnSync } from 'node:child_process'
import { userInfo } from 'node:os'
import { wholeProcess } from '../measure.ts'
import { startSshd } from './sshd.ts'

/** pdsh over a private sshd; null if either program is missing. */
export async function startPdsh(
  hosts: number,
): Promise<{ run(command: string): Promise<number>; stop(): Promise<void> } | null> {
  if (spawnSync('pdsh', ['-V']).status !== 0) return null
  const sshd = await startSshd()
  if (!sshd) return null
  const env = { ...process.env, PDSH_SSH_ARGS_APPEND: sshd.options.join(' ') }
  return {
    run: (command) =>
      wholeProcess(
        'pdsh',
        ['-S', '-R', 'ssh', '-l', userInfo().username, '-w', `host[1-${hosts}]`, command],
        { env },
      ),
    stop: () => sshd.stop(),
  }
}
