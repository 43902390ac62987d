import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { control } from '../../../src/cli/command/control.ts'
import { withIncoming } from '../../../src/cli/command/incoming.ts'
import type { Release } from '../../../src/core/protocol/control.ts'
import type { ReleaseSignature } from '../../../src/core/release.ts'

/** Adds a file with this content to the releases of a server, as `rsm server releases add` does. */
export async function handOut(
  { dataDir }: { readonly dataDir: string },
  content: string | Buffer,
  name = 'rsm-linux-x64',
  release?: ReleaseSignature,
): Promise<Release> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-release-'))
  try {
    const file = join(directory, name)
    await writeFile(file, content, { mode: 0o755 })
    return await withIncoming(dataDir, file, (incoming) =>
      control(dataDir, 'releases-add', {
        incoming,
        name,
        ...(release && { signature: JSON.stringify(release) }),
      }),
    )
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
