import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { ownReleaseKey } from '../../disk/own-release.ts'
import { agentVersion } from '../reports/facts.ts'
import { lackOfTerminal } from '../terminals/native.ts'
import { PtyHost } from '../terminals/pty-host.ts'

/** Milliseconds for a program on a terminal to end. */
const patience = 20_000

function onTerminal(directory: string): Promise<string> {
  const host = new PtyHost(directory)
  let output = ''
  const ended = new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('it did not end in time')), patience)
    const settle = (run: () => void) => {
      clearTimeout(timer)
      run()
    }
    const request = {
      argv: ['/bin/sh', '-c', 'test -t 0 && echo terminal'],
      env: { TERM: 'dumb' },
      cwd: '/',
      cols: 80,
      rows: 24,
      uid: process.getuid?.() ?? 0,
    }
    host.open('selftest', request, {
      opened: () => {},
      failed: (reason) => settle(() => reject(new Error(reason))),
      output: (bytes) => {
        output += Buffer.from(bytes).toString('latin1')
        host.credit('selftest', bytes.length)
      },
      dropped: () => {},
      exited: () => settle(() => resolve(output.trim())),
    })
  })
  return ended.finally(() => host.stop())
}

/**
 * Tests whether this rsm works as an agent on this host: loads all lazy modules, and runs a program on a
 * terminal if the host can open one. Resolves to its version. Rejects with RsmError.
 */
export async function selftest(): Promise<{ version: string; takesUpgrades: boolean }> {
  await Promise.all([
    import('../main.ts'),
    import('../../core/protocol/codec.ts'),
    import('../terminals/terminal.ts'),
    import('../terminals/input-guard.ts'),
  ])
  if (lackOfTerminal(tmpdir()) === null) {
    const directory = mkdtempSync(join(tmpdir(), 'rsm-selftest-'))
    try {
      const output = await onTerminal(directory)
      if (output !== 'terminal') throw new Error(`a program on it wrote ${JSON.stringify(output)}`)
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new RsmError('unavailable', `no terminal can be opened: ${why}`, { cause })
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
  return { version: agentVersion(), takesUpgrades: ownReleaseKey() !== null }
}
