import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const checkout = resolve(import.meta.dirname, '../../../..')
const built = ['package.json', 'oclif.manifest.json', 'bin', 'dist/src', 'dist/native', 'dist/test/fixtures']

/** The packages that stand by name, and all that they need. */
function withTheirs(names: readonly string[]): Set<string> {
  const found = new Set(names)
  // Grows while it is walked.
  for (const name of found) {
    const about = readFileSync(join(checkout, 'node_modules', name, 'package.json'), 'utf8')
    const { dependencies = {} } = JSON.parse(about) as { dependencies?: Record<string, string> }
    for (const needed of Object.keys(dependencies))
      if (existsSync(join(checkout, 'node_modules', needed))) found.add(needed)
  }
  return found
}

/**
 * A copy of what has been built, with the packages named, that every user may read, until the test is over: the checkout
 * may lie in a home that others can't enter. Answers its directory.
 */
export function openProgram(t: Pick<ExecutionContext, 'teardown'>, packages: readonly string[] = []): string {
  const copy = temporaryDirectory(t)
  const parts = [...built, ...[...withTheirs(packages)].map((name) => join('node_modules', name))]
  for (const part of parts) {
    mkdirSync(dirname(join(copy, part)), { recursive: true })
    cpSync(join(checkout, part), join(copy, part), { recursive: true })
  }
  chmodSync(copy, 0o755)
  // Whoever built it may have let nobody else read it.
  spawnSync('chmod', ['-R', 'a+rX', copy])
  return copy
}
