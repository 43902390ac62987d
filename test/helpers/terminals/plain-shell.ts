import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'

/**
 * A bash for terminals without profile and history: the profiles of a machine's users may take a minute, and leave locks behind
 * when they are interrupted. Returns its path.
 */
export function plainShell(t: Pick<ExecutionContext, 'teardown'>): string {
  const directory = mkdtempSync(join(tmpdir(), 'rsm-shell-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const path = join(directory, 'plain-bash')
  writeFileSync(
    path,
    '#!/bin/sh\n[ "$1" = -l ] && shift\nexport HISTFILE=\nexec bash --noprofile --norc "$@"\n',
    {
      mode: 0o755,
    },
  )
  return path
}
