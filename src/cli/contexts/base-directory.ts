import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

const defaults = { CONFIG: '.config', STATE: '.local/state', CACHE: '.cache' }

/** Where files of one kind belong to their user (XDG base directories); a relative path in the variable counts as none. */
export function baseDirectory(kind: keyof typeof defaults, env: NodeJS.ProcessEnv = process.env): string {
  const base = env[`XDG_${kind}_HOME`] ?? ''
  return isAbsolute(base) ? base : join(homedir(), defaults[kind])
}
