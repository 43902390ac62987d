// The RPM package, by rpmbuild.
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'
import { epoch, published } from './release.js'
import { settle } from './tree.js'

/** Writes the package of a laid out tree to `file`; `work` is for what rpmbuild leaves. */
export function makeRpm(tree, architecture, file, preset, work) {
  settle(tree)
  mkdirSync(work, { recursive: true })
  const defined = {
    _topdir: work,
    rsm_tree: tree,
    rsm_version: published.version,
    // Always two threads: their number changes the bytes.
    _binary_payload: `w${preset}T2.xzdio`,
    _buildhost: 'rsm',
    use_source_date_epoch_as_buildtime: '1',
    clamp_mtime_to_source_date_epoch: '1',
  }
  const words = Object.entries(defined).flatMap(([name, value]) => ['--define', `${name} ${value}`])
  execFileSync(
    'rpmbuild',
    ['-bb', '--target', `${architecture}-linux`, ...words, join(root, 'packaging/rsm.spec')],
    {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
      stdio: 'pipe',
    },
  )
  copyFileSync(join(work, 'RPMS', architecture, `rsm-${published.version}-1.${architecture}.rpm`), file)
}
