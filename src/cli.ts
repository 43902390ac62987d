import type { Config } from '@oclif/core/interfaces'
import { refuseForeignBytes } from './cli/command/argv.ts'
import { type Asked, type Manifest, readCommandLine } from './cli/command/command-line.ts'
import { failureOf, reportFailure, unwritable } from './cli/command/failure.ts'
import { ownPackage, ownText } from './disk/own-files.ts'

interface CommandClass {
  id: string
  new (argv: string[], config: Config): { _run(): Promise<unknown> }
}

/** Exit code after a broken pipe: 128 + SIGPIPE. */
const brokenPipe = 141

/** Loads a command by its path without the extension, e.g. `commands/hosts/list`. */
type LoadCommand = (path: string) => Promise<{ default: CommandClass }>

/** Commands lie beside this file, in dist/src as in a bundle. */
const beside: LoadCommand = (path) =>
  import(new URL(`${path}.js`, import.meta.url).href) as ReturnType<LoadCommand>

/**
 * The part of oclif's configuration that commands read. Only help loads the real one, because that takes a third of
 * the startup time.
 */
function lightConfig(): Config {
  const config = {
    bin: 'rsm',
    name: 'rsm',
    root: '/',
    get version() {
      return ownPackage().version
    },
    topicSeparator: ' ',
    userAgent: 'rsm',
    runHook: async () => ({ successes: [], failures: [] }),
    scopedEnvVarKeys: () => [],
  }
  return config as unknown as Config
}

async function carryOut(asked: Asked, manifest: Manifest, load: LoadCommand): Promise<void> {
  if (asked.kind === 'help') {
    const { showHelp } = await import('./cli/command/help.ts')
    await showHelp(asked.words, manifest)
    return
  }
  const { default: Command } = await load(`commands/${asked.id.replaceAll(':', '/')}`)
  Command.id = asked.id
  await new Command([...asked.argv], lightConfig())._run()
}

/** Runs a command line; `load` finds commands that do not lie beside this file. */
export async function main(argv: string[], load: LoadCommand = beside): Promise<void> {
  let asked: Asked | undefined
  const isJson = () => (asked?.kind === 'run' ? asked.json : argv.includes('--json'))
  // Runs before oclif's own listener, which throws.
  process.stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(brokenPipe)
    // Incomplete output must not exit 0, and further writes would fail too.
    process.exit(reportFailure(failureOf(unwritable(error)), isJson()))
  })
  // A closed stderr must not end the command.
  process.stderr.on('error', () => {})
  try {
    const manifest = JSON.parse(ownText('oclif.manifest.json')) as Manifest
    refuseForeignBytes(argv)
    asked = readCommandLine(manifest, argv)
    await carryOut(asked, manifest, load)
  } catch (error) {
    const run = asked?.kind === 'run' ? asked : undefined
    const failure = failureOf(error, run?.id, Object.keys(run?.command.flags ?? {}))
    process.exitCode = reportFailure(failure, isJson())
  }
}
