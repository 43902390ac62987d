import { RsmError } from '../core/errors.ts'

/** Settings of a service, by the name of their variable. */
export type Settings = ReadonlyMap<string, string>

const plain = /^[\w./:@%+,=-]*$/

/**
 * A value as systemd's EnvironmentFile and sh both read it: within double quotes both take a backslash before these.
 * Errors: `usage` for one with a line end, which neither takes.
 */
export function quoted(name: string, value: string): string {
  if (/[\0\r\n]/.test(value)) throw new RsmError('usage', `${name} can't hold a line end`)
  return plain.test(value) ? value : `"${value.replaceAll(/[\\"$`]/g, '\\$&')}"`
}

/** The file of these settings, for systemd's EnvironmentFile and for `. FILE` of sh. */
export function writeEnvFile(settings: Settings): string {
  return [...settings].map(([name, value]) => `${name}=${quoted(name, value)}\n`).join('')
}

/** What `writeEnvFile` wrote, and what people write by hand: comments and quotes of either kind. */
export function readEnvFile(text: string): Map<string, string> {
  const settings = new Map<string, string>()
  for (const line of text.split('\n')) {
    const at = line.indexOf('=')
    const name = line
      .slice(0, Math.max(at, 0))
      .trim()
      .replace(/^export\s+/, '')
    if (!/^\w+$/.test(name)) continue
    const value = line.slice(at + 1).trim()
    const quote = value.length > 1 && value.at(0) === value.at(-1) ? value.at(0) : undefined
    const inner = value.slice(1, -1)
    if (quote === '"') settings.set(name, inner.replaceAll(/\\([\\"$`])/g, '$1'))
    else settings.set(name, quote === "'" ? inner : value)
  }
  return settings
}
