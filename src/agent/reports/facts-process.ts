import si from 'systeminformation'

/** Prints the size of this host's disks in bytes. Runs in its own process, to save memory in the agent. */
export async function printDiskSize(): Promise<void> {
  const fileSystems = await si.fsSize()
  const disks = new Map(fileSystems.map(({ fs, size }) => [fs, size]))
  process.stdout.write(String([...disks.values()].reduce((sum, size) => sum + size, 0)))
}
