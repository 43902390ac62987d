import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where programs of a user keep what lasts (XDG base directories). */
export function stateDirectory(name: string, env: NodeJS.ProcessEnv = process.env): string {
  const base = env['XDG_STATE_HOME']
  return join(base !== undefined && base !== '' ? base : join(homedir(), '.local', 'state'), 'rsm', name)
}

/** The default of `--data-dir` in the words of its help, the same on every machine. */
export function dataDirectoryHelp(name: 'server' | 'agent'): string {
  return `for root ${join('/var/lib/rsm', name)}, else ~/.local/state/rsm/${name}`
}

/** `/var/lib/rsm/NAME` for root, as services have it, else the user's own state directory. */
export function defaultDataDirectory(name: 'server' | 'agent'): string {
  return process.getuid?.() === 0 ? join('/var/lib/rsm', name) : stateDirectory(name)
}
