import test from 'ava'
import { hostFields } from '../../../src/cli/hosts/view.ts'
import { healthyHost as host, metrics, systemInfo } from '../../helpers/api/records.ts'

test('a host is shown with its distribution, or the system name that an older agent sends', (t) => {
  t.is(hostFields(host, true)['system'], 'Debian GNU/Linux 12 (bookworm), 6.1.0-28-amd64, x64')
  const { distribution: _, ...older } = systemInfo
  t.is(hostFields({ ...host, systemInfo: older }, true)['system'], 'linux, 6.1.0-28-amd64, x64')
})

test('inodes of a disk are shown if a larger share of them is used than of its space', (t) => {
  const disk = [
    { mountPoint: '/', totalGB: 1, usedGB: 1, usagePercent: 42, inodesPercent: 8 },
    { mountPoint: '/var', totalGB: 1, usedGB: 1, usagePercent: 4, inodesPercent: 100 },
    { mountPoint: '/srv', totalGB: 1, usedGB: 1, usagePercent: 7 },
  ]
  const { disks } = hostFields({ ...host, metrics: { ...metrics, disk } }, true)
  t.is(disks, '/ 42 %, /var 4 % (100 % of its inodes), /srv 7 %')
})
