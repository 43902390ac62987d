import type { Metrics } from '../../../src/core/hosts/host.ts'

/** A report of a small host; `disks` are mount points with their usage in percent. */
export function metrics(
  timestamp: string,
  { cpu = 12.5, disks = { '/': 40 } }: { cpu?: number; disks?: Record<string, number> } = {},
): Metrics {
  return {
    timestamp,
    cpu: { usagePercent: cpu, loadAvg1m: 0.42, loadAvg5m: 0.4, loadAvg15m: 0.38 },
    memory: { totalMB: 3926, usedMB: 1187, availableMB: 2739, usagePercent: 30.2 },
    disk: Object.entries(disks).map(([mountPoint, usagePercent]) => ({
      mountPoint,
      totalGB: 39.2,
      usedGB: 15.7,
      usagePercent,
    })),
    network: { rxBytesPerSec: 18_220, txBytesPerSec: 9034, connections: 57 },
  }
}
