import type { FieldFault } from '../errors.ts'

/**
 * Names of environment variables that change how programs load or run, with their effect (contract §4). Collected
 * from bash(1), ld.so(8) and its list of variables that setuid programs drop, and the manuals of the interpreters.
 * Names are case-sensitive: `path` is an ordinary name on Linux.
 */
const reserved: readonly (readonly [names: RegExp, effect: string])[] = [
  [/^(PATH|CDPATH|EXECIGNORE)$/, 'decides which programs and folders are found'],
  [/^(LD_|DYLD_)/, 'makes the dynamic linker load other libraries'],
  [
    /^(GCONV_PATH|GETCONF_DIR|GLIBC_TUNABLES|LOCPATH|NIS_PATH|NLSPATH|TZDIR)$|^MALLOC_/,
    'changes what the C library loads',
  ],
  [/^(HOSTALIASES|LOCALDOMAIN|RESOLV_HOST_CONF|RES_OPTIONS)$/, 'changes how host names are resolved'],
  [/^(ENV|PROMPT_COMMAND|PS[0-4])$|^BASH(_|OPTS$)/, 'is run or obeyed by the shell'],
  [/^(GLOBIGNORE|IFS|POSIXLY_CORRECT|SHELLOPTS)$/, 'changes how the shell reads a script'],
  [
    /^(_|BASHPID|DIRSTACK|EPOCHREALTIME|EPOCHSECONDS|EUID|FUNCNAME|GROUPS|LINENO|OLDPWD|OPTIND|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHLVL|SRANDOM|UID)$/,
    'is set by the shell itself, so the script would not see this value',
  ],
  [/^(HOME|LOGNAME|SHELL|USER)$/, 'is set by the agent for the user that runs the script'],
  [/^RSM_/, 'is reserved for rsm'],
  [/^PYTHON([A-Z]|_(?!VERSION$))/, 'changes what Python loads or how it runs'],
  [
    /^NODE_(EXTRA_CA_CERTS|OPTIONS|PATH|REPL_EXTERNAL_MODULE|TLS_REJECT_UNAUTHORIZED)$/,
    'changes what Node.js loads or trusts',
  ],
  [/^PERL(5|LIB$|IO)/, 'changes what Perl loads'],
  [/^(RUBYLIB|RUBYOPT|RUBYSHELL|GEM_HOME|GEM_PATH|BUNDLE_GEMFILE)$/, 'changes what Ruby loads'],
  [/^(CLASSPATH|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS)$/, 'changes what Java loads'],
  [/^LUA_(C?PATH|INIT)(_|$)|^(PHPRC|PHP_INI_SCAN_DIR|TCLLIBPATH)$/, 'changes what an interpreter loads'],
  [/^(PSModulePath|__PSLockdownPolicy)$/, 'changes what PowerShell loads'],
  [
    /^DOTNET_(ADDITIONAL_DEPS|ROOT.*|SHARED_STORE|STARTUP_HOOKS)$|^(CORECLR|COR)_(ENABLE_PROFILING|PROFILER)/,
    'changes what .NET, and so PowerShell, loads',
  ],
  [
    /^(OPENSSL_CONF|OPENSSL_ENGINES|OPENSSL_MODULES|SSLKEYLOGFILE)$/,
    'changes what OpenSSL loads or gives away',
  ],
  [/^(TERMCAP|TERMINFO|TERMINFO_DIRS|TERMPATH)$/, 'changes what terminal programs load'],
  [
    /^GIT_(ASKPASS|CONFIG.*|EDITOR|EXEC_PATH|EXTERNAL_DIFF|PAGER|PROXY_COMMAND|SEQUENCE_EDITOR|SSH|SSH_COMMAND|TEMPLATE_DIR)$/,
    'makes git run other programs',
  ],
  [/^(LESSCLOSE|LESSOPEN|SSH_ASKPASS|SUDO_ASKPASS)$/, 'makes other programs run a command'],
]

/**
 * Linux does not start a program with a variable over 128 KiB: name, `=`, value and the NUL at the end (execve(2),
 * MAX_ARG_STRLEN). An accepted script must start.
 */
const maxVariableBytes = 128 * 1024 - 2
const tooLong = `has more than ${maxVariableBytes} bytes in name and value, the most that Linux allows: pass it as a file or as stdin`
/** Linux allows a quarter of the stack limit, 2 MiB by default, for all variables and arguments: half for params. */
const maxAllBytes = 1024 * 1024
/** The terminator and the pointer that each variable takes besides its text. */
const bytesBeside = 10

type Params = Readonly<Record<string, string>>

const utf8 = new TextEncoder()
const sizeOfVariable = (name: string, value: string): number => name.length + utf8.encode(value).length

/** Why a parameter cannot have this name, phrased to follow the name; null if it can (contract §4). */
export function paramNameFault(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name))
    return 'is not a valid variable name: use letters, digits and _, no digit first, at most 128 characters'
  const effect = reserved.find(([names]) => names.test(name))?.[1]
  return effect === undefined ? null : `${effect}: choose another name`
}

/** Why a param cannot have this name although it is valid for a variable; null if it can. */
export function reservedFault(name: string): string | null {
  const effect = reserved.find(([names]) => names.test(name))?.[1]
  return effect === undefined ? null : `${name} ${effect}: choose another name, or set it inside the script`
}

/** Variables that the server adds to the params. */
const serverVariables = /^RSM_(HOST|HOST_ID|CLUSTERS|TAGS|TAG_[A-Z0-9_]+|PHASE|EXIT_CODE)$/

/** Null if valid, else phrased to follow the name. Agents check too: the server may be compromised. */
export function variableFault(name: string, value: string): string | null {
  if (value.includes('\0')) return 'contains a NUL byte, which an environment variable cannot hold'
  if (sizeOfVariable(name, value) > maxVariableBytes) return tooLong
  return serverVariables.test(name) ? null : paramNameFault(name)
}

function faultOf(name: string, value: string): string | null {
  const fault = reservedFault(name)
  if (fault !== null) return fault
  if (/\p{Surrogate}/u.test(value)) return 'contains an unpaired surrogate, which UTF-8 cannot encode'
  return sizeOfVariable(name, value) > maxVariableBytes ? tooLong : null
}

/** Faults of single parameters; values are never shown. */
export function paramFaults(field: 'params' | 'secretParams', params: Params): FieldFault[] {
  const faults: FieldFault[] = []
  for (const [name, value] of Object.entries(params)) {
    const message = faultOf(name, value)
    if (message !== null) faults.push({ field: `${field}.${name}`, message })
  }
  return faults
}

export function jointFaults(params: Params, secretParams: Params): FieldFault[] {
  const faults = Object.keys(secretParams)
    .filter((name) => Object.hasOwn(params, name))
    .map((name) => ({ field: `secretParams.${name}`, message: 'is given in params too' }))
  const all = [...Object.entries(params), ...Object.entries(secretParams)]
  const bytes = all.reduce((sum, [name, value]) => sum + sizeOfVariable(name, value) + bytesBeside, 0)
  if (bytes > maxAllBytes)
    faults.push({
      field: 'params',
      message: `all parameters have ${bytes} bytes together, more than ${maxAllBytes}: put them in a file`,
    })
  return faults
}

export interface KnownHost {
  readonly id: number
  readonly hostname: string
  readonly tags: Readonly<Record<string, string>>
  /** Names. */
  readonly clusters: readonly string[]
}

/** Most bytes of all variables: they are sent with each script, and Linux limits the environment of a program. */
const mostHostBytes = 64 * 1024

/** Variables of tags whose upper-case keys are valid names; keys that map to the same name get none. */
function tagVariables(tags: KnownHost['tags']): [name: string, value: string][] {
  const named = Object.entries(tags).map(([key, value]) => [`RSM_TAG_${key.toUpperCase()}`, value] as const)
  const count = new Map<string, number>()
  for (const [name] of named) count.set(name, (count.get(name) ?? 0) + 1)
  return named.flatMap(([name, value]) =>
    /^[A-Z0-9_]+$/.test(name) && count.get(name) === 1 ? [[name, value]] : [],
  )
}

/** Environment variables that describe the host to a script. Beyond 64 KiB, single tags are left out first. */
export function hostVariables({ id, hostname, tags, clusters }: KnownHost): Record<string, string> {
  const all: [string, string][] = [
    ['RSM_HOST', hostname],
    ['RSM_HOST_ID', String(id)],
    ['RSM_CLUSTERS', clusters.join(',')],
    ['RSM_TAGS', JSON.stringify(tags)],
    ...tagVariables(tags),
  ]
  let room = mostHostBytes
  const kept = all.filter(([name, value]) => {
    const size = sizeOfVariable(name, value)
    if (size > room) return false
    room -= size
    return true
  })
  return Object.fromEntries(kept)
}
