import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Config } from '@oclif/core/interfaces'
import { refuseForeignBytes } from './ui/command/argv.ts'
import { type Asked, type Manifest, readCommandLine } from './ui/command/command-line.ts'
import { failureOf, reportFailure, unwritable } from './ui/command/failure.ts'

interface CommandClass {
  id: string
  new (argv: string[], config: Config): { _run(): Promise<unknown> }
}

/** Exit code of a program whose reader went away: 128 + SIGPIPE. */
const brokenPipe = 141

const root = fileURLToPath(new URL('../../', import.meta.url))

/**
 * What a command reads of oclif's configuration. Loading the real one costs a third of a start; help, which needs it,
 * loads it.
 */
function lightConfig(): Config {
  const config = {
    bin: 'rsm',
    name: 'rsm',
    root,
    get version() {
      return (JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string }).version
    },
    topicSeparator: ' ',
    userAgent: 'rsm',
    runHook: async () => ({ successes: [], failures: [] }),
    scopedEnvVarKeys: () => [],
  }
  return config as unknown as Config
}

async function carryOut(asked: Asked): Promise<void> {
  if (asked.kind === 'help') {
    const { run } = await import('@oclif/core/run')
    await run([...asked.words, '--help'], root)
    return
  }
  // Beside this file, which is bundled or not, and so are they.
  const [, , ...path] = asked.command.relativePath
  const file = new URL(path.join('/'), import.meta.url).href
  const { default: Command } = (await import(file)) as { default: CommandClass }
  Command.id = asked.id
  await new Command([...asked.argv], lightConfig())._run()
}

export async function main(argv: string[]): Promise<void> {
  let asked: Asked | undefined
  const isJson = () => (asked?.kind === 'run' ? asked.json : argv.includes('--json'))
  // First: oclif has a listener of its own, which throws.
  process.stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(brokenPipe)
    // What is half written is no success, and the rest can't be written either.
    process.exit(reportFailure(failureOf(unwritable(error)), isJson()))
  })
  // Nobody reads the errors any more: that ends no command.
  process.stderr.on('error', () => {})
  try {
    const manifest = JSON.parse(readFileSync(`${root}oclif.manifest.json`, 'utf8')) as Manifest
    refuseForeignBytes(argv)
    asked = readCommandLine(manifest, argv)
    await carryOut(asked)
  } catch (error) {
    const run = asked?.kind === 'run' ? asked : undefined
    const failure = failureOf(error, run?.id, Object.keys(run?.command.flags ?? {}))
    process.exitCode = reportFailure(failure, isJson())
  }
}
