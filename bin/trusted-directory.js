// Checks that this user may run compiled code from a directory: no other user may be able to write there.
const { realpathSync, statSync } = require('node:fs')
const path = require('node:path')

const stickyBit = 0o1000
const writableByGroup = 0o020
const writableByOthers = 0o002

/** Whether a file or directory belongs to this user and no other user may change it. */
exports.isOwn = ({ uid, mode }) =>
  uid === process.geteuid() && (mode & (writableByGroup | writableByOthers)) === 0

/** Whether only this user and root may rename parts of the path. The primary group counts as the user. */
function isSafeOnTheWay({ uid, gid, mode }) {
  if (uid !== 0 && uid !== process.geteuid()) return false
  if ((mode & stickyBit) !== 0) return true
  return (mode & writableByOthers) === 0 && ((mode & writableByGroup) === 0 || gid === process.getegid())
}

/** The directory without symlinks, which need not exist yet; null if another user may change its contents. */
exports.trustedDirectory = (directory) => {
  try {
    let existing = path.resolve(directory)
    const missing = []
    while (statSync(existing, { throwIfNoEntry: false }) === undefined) {
      missing.unshift(path.basename(existing))
      existing = path.dirname(existing)
    }
    const found = realpathSync(existing)
    if (missing.length === 0 && !exports.isOwn(statSync(found))) return null
    for (let at = found; ; at = path.dirname(at)) {
      if (!isSafeOnTheWay(statSync(at))) return null
      if (at === path.dirname(at)) return path.join(found, ...missing)
    }
  } catch {
    return null
  }
}
