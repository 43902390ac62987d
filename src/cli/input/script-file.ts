import { existsSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import type { ScriptType } from '../../core/scripts/script-form.ts'
import { readNamedBytes } from './named-path.ts'
import { stdinReader, utf8Text } from './stdin.ts'

/** The server's limit (contract §1); repeated here, because loading the schema slows down the start. */
const maxScriptBytes = 1024 * 1024

const extensions: Record<string, ScriptType> = {
  '.sh': 'BASH',
  '.bash': 'BASH',
  '.py': 'PYTHON',
  '.ps1': 'POWERSHELL',
}

export const scriptTypeNames = ['bash', 'python', 'powershell']

/** The named type, else from the file extension or the `#!` line, else BASH. */
export function scriptType(named: string | undefined, text: string, path = ''): ScriptType {
  const upper = named?.toUpperCase()
  if (upper === 'BASH' || upper === 'PYTHON' || upper === 'POWERSHELL') return upper
  const [first = ''] = text.split('\n', 1)
  const known = extensions[extname(path).toLowerCase()]
  if (known !== undefined) return known
  if (/^#!.*\bpython/.test(first)) return 'PYTHON'
  return /^#!.*\bpwsh/.test(first) ? 'POWERSHELL' : 'BASH'
}

/** Whether `--script X` means a file: it holds a slash or exists (contract §9). */
export function meansFile(name: string): boolean {
  return name.includes('/') || (existsSync(name) && statSync(name).isFile())
}

export function readScriptFile(path: string): { text: string; name: string } {
  const bytes = readNamedBytes(path)
  if (bytes.length > maxScriptBytes)
    throw new RsmError('usage', `${path} is too large: a script has at most 1 MiB`, {
      hint: 'let the script download what it needs',
    })
  return { text: utf8Text(bytes, path), name: basename(path) }
}

export async function readScriptText(path: string): Promise<string> {
  return path === '-' ? stdinReader()('the script') : readScriptFile(path).text
}

/** Default script name for a file: without the extension of its language. */
export function nameOfFile(path: string): string {
  const name = basename(path)
  const ending = extname(name)
  return ending.toLowerCase() in extensions ? name.slice(0, -ending.length) : name
}

/** File name for a script's text, with the extension by which editors recognize the language. */
export function fileNameOf({ name, type }: { readonly name: string; readonly type: ScriptType }): string {
  const [ending = ''] = Object.entries(extensions).find(([, each]) => each === type) ?? []
  return `${name.replace(/[^A-Za-z0-9_-]+/g, '_')}${ending}`
}
