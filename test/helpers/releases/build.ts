import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import type { ReleaseKey } from './release-key.ts'

const held = [
  'bin',
  'dist/agent',
  'dist/cli',
  'dist/server',
  'dist/native',
  'dist/web',
  'dist/docs',
  'packaging',
]

/** rsm as `npm run package npm` lays it out, as another version and with a release key. */
export interface OwnBuild {
  readonly version: string
  /** Its program, for Node. */
  readonly program: string
  /** A stand-in for its single executable: a script that starts it. */
  readonly executable: string
}

function place(path: string, root: string): void {
  const to = join(root, path)
  mkdirSync(dirname(to), { recursive: true })
  cpSync(resolve(path), to, { recursive: true })
}

/** Makes it from the output of this checkout's build; its stand-in first runs the sh lines `before`. */
export function makeBuild(
  t: Pick<ExecutionContext, 'teardown'>,
  { version, key, before = '' }: { version: string; key?: ReleaseKey; before?: string },
): OwnBuild {
  const root = temporaryDirectory(t)
  for (const path of [...held, 'oclif.manifest.json']) place(path, root)
  const { dependencies: _, ...own } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
    string,
    unknown
  >
  const made = { ...own, version, ...(key && { releaseKey: key.held }) }
  writeFileSync(join(root, 'package.json'), JSON.stringify(made))
  const program = join(root, 'bin/run.js')
  const executable = `#!/bin/sh\n# rsm ${version}\n${before}exec '${process.execPath}' '${program}' "$@"\n`
  return { version, program, executable }
}
