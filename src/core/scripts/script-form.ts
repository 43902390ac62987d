import { shortened } from '../text/pieces.ts'

export const scriptTypes = ['BASH', 'PYTHON', 'POWERSHELL'] as const
export type ScriptType = (typeof scriptTypes)[number]

/** Bytes of UTF-8; the schema limits characters, the service limits bytes (contract §1). */
export const maxScriptBytes = 1024 * 1024

const longestFirstLine = 80

/** Valid file names of a script: never a path. */
export const scriptFileName = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/

/** Program that runs a script: that of its type, or `sh` if a BASH script's first line names a plain shell. */
export type Interpreter = 'bash' | 'sh' | 'python3' | 'pwsh'

interface Family {
  /** Interpreters whose scripts this type runs, by the last part of their path. */
  readonly names: RegExp
  readonly program: Interpreter
  /** Supported options of a first line; those of `dropped` are always in force, or have no effect. */
  readonly options: RegExp
  readonly dropped: RegExp
}

const families: Record<ScriptType, Family> = {
  BASH: {
    names: /^(ba|da|a)?sh$/,
    program: 'bash',
    options: /^([-+][abefhlmpuvxBCEHPT]+|--(login|noprofile|norc|posix))$/,
    dropped: /^--?$/,
  },
  PYTHON: {
    names: /^python(3(\.\d+)?)?$/,
    program: 'python3',
    options: /^-[bBdEIOPqsSvu]+$/,
    dropped: /^$/,
  },
  POWERSHELL: {
    names: /^(pwsh|powershell)(\.exe)?$/i,
    program: 'pwsh',
    options: /^(?!)/,
    dropped: /^-(NoProfile|NonInteractive|NoLogo)$/i,
  },
}

/** BASH scripts that run with the host's `sh`, as the kernel would. Options are not checked against that `sh`. */
const plainShell: Family = { ...families.BASH, names: /^(da|a)?sh$/, program: 'sh' }

/** Paths where an interpreter is the one that agents find. */
const usualPath = /^\/(usr\/(local\/)?)?s?bin\/[^/]+$/
/** `-o pipefail`, also at the end of a group as in `-euo pipefail`. */
const namedOption = /^[-+][abefhlmpuvxBCEHPT]*o$/

interface Shebang {
  readonly path: string
  readonly name: string
  readonly options: readonly string[]
}

/** First line of a script as the kernel reads it, but with options split at blanks; null without one. */
function shebangOf(content: string): Shebang | null {
  const line = /^\ufeff?#!([^\n]*)/.exec(content)?.[1]?.trim()
  if (!line) return null
  let [path = '', ...options] = line.split(/[ \t]+/)
  if (/(^|\/)env$/.test(path)) {
    if (options[0] === '-S') options = options.slice(1)
    path = options[0] ?? ''
    options = options.slice(1)
  }
  return { path, name: path.slice(path.lastIndexOf('/') + 1), options }
}

const familyOf = (type: ScriptType, shebang: Shebang): Family =>
  type === 'BASH' && plainShell.names.test(shebang.name) ? plainShell : families[type]

/** Separates supported options of a first line; stops at the first unsupported one. */
function sorted(type: ScriptType, shebang: Shebang): { honoured: string[]; refused: string | null } {
  const { options } = shebang
  const { options: known, dropped } = familyOf(type, shebang)
  const honoured: string[] = []
  for (let at = 0; at < options.length; at++) {
    const option = options[at] ?? ''
    const value = options[at + 1]
    if (type === 'BASH' && namedOption.test(option) && /^[a-z]+$/.test(value ?? '')) {
      honoured.push(option, value ?? '')
      at += 1
    } else if (known.test(option)) honoured.push(option)
    else if (!dropped.test(option)) return { honoured, refused: option }
  }
  return { honoured, refused: null }
}

/**
 * Interpreter of a script, with the options of its own first line, as `-e` in `#!/bin/bash -e`: without them it would
 * continue after a failure that should stop it.
 */
export function interpreterOf(
  type: ScriptType,
  content: string,
): { program: Interpreter; options: string[] } {
  const shebang = shebangOf(content)
  if (!shebang || !families[type].names.test(shebang.name))
    return { program: families[type].program, options: [] }
  return { program: familyOf(type, shebang).program, options: sorted(type, shebang).honoured }
}

function shebangFault(type: ScriptType, content: string): string | null {
  const shebang = shebangOf(content)
  if (!shebang) return null
  const { path, name, options } = shebang
  const { names } = families[type]
  const { program } = familyOf(type, shebang)
  if (!names.test(name)) {
    const meant = Object.entries(families).find(([, family]) => family.names.test(name))?.[0]
    const way = meant
      ? `give it the type ${meant}`
      : `start ${name || 'its interpreter'} from a script of type BASH`
    return `begins with #!${path}, but its type is ${type}, which ${program} runs: ${way}`
  }
  if (path.includes('/') && !usualPath.test(path))
    return `begins with #!${path}, but ${type} is run by the ${program} of the host's PATH: start ${path} from a script of type BASH`
  const { refused } = sorted(type, shebang)
  if (refused === null) return null
  return `begins with #!${path} ${options.join(' ')}, but ${refused} is not supported: remove it from the first line`
}

const lineOf = (content: string, at: number) => content.slice(0, at).split('\n').length

/**
 * Why a text cannot run as this type; each sentence follows the name of its field. A text without faults runs byte
 * for byte as given (docs/use/scripts.md).
 */
export function scriptFaults(type: ScriptType, content: string): string[] {
  const faults: string[] = []
  const nul = content.indexOf('\0')
  if (nul >= 0) faults.push(`line ${lineOf(content, nul)} contains a NUL, which no interpreter accepts`)
  const lone = content.search(/\p{Surrogate}/u)
  if (lone >= 0)
    faults.push(`line ${lineOf(content, lone)} contains an unpaired surrogate, which UTF-8 cannot encode`)
  if (type === 'BASH') {
    if (content.startsWith('\ufeff'))
      faults.push(
        "begins with a byte order mark, which bash reads as part of the first command: store it without one, as with sed -i '1s/^\\xEF\\xBB\\xBF//' FILE",
      )
    const cr = content.search(/\r(\n|$)/)
    if (cr >= 0)
      faults.push(
        `line ${lineOf(content, cr)} ends with CR LF as on Windows, and bash reads the CR as part of the command: store it with LF, as with sed -i 's/\\r$//' FILE`,
      )
  }
  const shebang = shebangFault(type, content)
  if (shebang !== null) faults.push(shebang)
  return faults
}

/** First line of a script that is not a comment, to identify an unnamed script in a list; null if there is none. */
export function firstLine(script: string, most = longestFirstLine): string | null {
  for (const line of script.split('\n', 200)) {
    const text = line.replaceAll(/\p{Cc}+/gu, ' ').trim()
    if (text !== '' && !text.startsWith('#')) return shortened(text, most)
  }
  return null
}
