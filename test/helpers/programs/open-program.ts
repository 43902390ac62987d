import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const checkout = resolve(import.meta.dirname, '../../../..')
const built = ['package.json', 'oclif.manifest.json', 'bin', 'dist/src', 'dist/native', 'dist/test/fixtures']

/** These packages and all of their dependencies. */
function withTheirs(names: readonly string[]): Set<string> {
  const found = new Set(names)
  // The set grows while it is iterated.
  for (const name of found) {
    const about = readFileSync(join(checkout, 'node_modules', name, 'package.json'), 'utf8')
    const { dependencies = {} } = JSON.parse(about) as { dependencies?: Record<string, string> }
    for (const needed of Object.keys(dependencies))
      if (existsSync(join(checkout, 'node_modules', needed))) found.add(needed)
  }
  return found
}

/**
 * Copies the build and these packages to a directory that every user may read, until the test is over: the checkout may be in a
 * home that others cannot enter. Returns the directory.
 */
export function openProgram(t: Pick<ExecutionContext, 'teardown'>, packages: readonly string[] = []): string {
  const copy = temporaryDirectory(t)
  const parts = [...built, ...[...withTheirs(packages)].map((name) => join('node_modules', name))]
  for (const part of parts) {
    mkdirSync(dirname(join(copy, part)), { recursive: true })
    cpSync(join(checkout, part), join(copy, part), { recursive: true })
  }
  chmodSync(copy, 0o755)
  // The build may be readable by its user only.
  spawnSync('chmod', ['-R', 'a+rX', copy])
  return copy
}
