/** How hosts are named where a command takes one or more, in the words of help. */
export const hostsDescription = "hosts, like web1, 'web[1-3]' or @id:17"
