// Processes of their own: for what only a fresh one shows.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace kiln::bench {

// Runs the program words[0] to its end; returns the first number that it prints (0: none). Throws cli::Failure when it
// fails.
double run_process(std::vector<std::string> words);

// The same with all that it prints. `meanwhile` is called when it has printed a line, and its standard input ends
// after.
std::string output_of_process(std::vector<std::string> words, const std::function<void()> &meanwhile = {});

// Of a C program that maps the weights of `chars` and reads every page: the least that any start could take.
double bare_process_seconds();

}  // namespace kiln::bench
