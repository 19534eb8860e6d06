# Sums up the file of results that results-reporter.mjs and scripts/test write, given twice: its second reading
# counts, its first finds the tests that this machine's kernel could not run and the virtual machine did. Such a test
# counts once, as what it did there; what the virtual machine ran beside them counts only if it failed.
# Fails when a test failed or none passed.
BEGIN { FS = "\t" }
NR == FNR {
  if ($2 == "vm") ran[$3] = 1
  else if ($1 == "skipped" && $4 ~ /^the kernel lacks /) lacked[$3] = 1
  next
}
$2 == "vm" && $1 != "failed" && !($3 in lacked) { next }
$2 != "vm" && $1 == "skipped" && ($3 in lacked) && ($3 in ran) { next }
$1 == "skipped" { skips[++s] = $2 ": " $3 ": " $4 }
$1 == "failed" { failures[++f] = $2 ": " $3 (length($4) ? ": " $4 : "") }
{ count[$1]++ }
END {
  if (s) { print "\nSkipped:"; for (i = 1; i <= s; i++) print "  " skips[i] }
  if (f) { print "\nFailed:"; for (i = 1; i <= f; i++) print "  " failures[i] }
  printf "\n%d passed, %d failed, %d skipped\n", count["passed"], count["failed"], count["skipped"]
  exit f > 0 || count["passed"] == 0
}
